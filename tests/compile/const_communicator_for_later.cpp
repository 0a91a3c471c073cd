// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this communicator is const, and calls change it; pass one that is not
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(const ddl::threads& team, std::vector<std::vector<float>>& tensors) {
    const ddl::request under_way = ddl::allreduce_n_async(team, tensors);
    under_way.wait();
}
#else
void call(ddl::threads& team, std::vector<std::vector<float>>& tensors) {
    const ddl::request under_way = ddl::allreduce_n_async(team, tensors);
    under_way.wait();
}
#endif
