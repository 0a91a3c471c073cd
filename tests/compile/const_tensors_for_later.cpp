// SPDX-License-Identifier: Apache-2.0
// expect: ddl: allreduce_n works in place; pass a range of writable ranges
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, const std::vector<std::vector<float>>& tensors) {
    ddl::allreduce_n_async(team, tensors).wait();
}
#else
void call(ddl::threads& team, std::vector<std::vector<float>>& tensors) {
    ddl::allreduce_n_async(team, tensors).wait();
}
#endif
