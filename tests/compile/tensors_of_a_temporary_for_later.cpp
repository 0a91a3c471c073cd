// SPDX-License-Identifier: Apache-2.0
// expect: ddl: a plan or nonblocking call would refer to a temporary that is gone; name it first
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <span>
#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team) { ddl::allreduce_n_async(team, std::vector<std::vector<float>>(3)).wait(); }
#else
void call(ddl::threads& team, std::vector<std::vector<float>>& tensors) {
    ddl::allreduce_n(team, std::vector<std::vector<float>>(3));
    ddl::allreduce_n_async(team, tensors).wait();
    ddl::allreduce_n_async(team, std::span(tensors)).wait();
    ddl::allreduce_n_async(team, std::vector<std::span<float>>(tensors.begin(), tensors.end())).wait();
}
#endif
