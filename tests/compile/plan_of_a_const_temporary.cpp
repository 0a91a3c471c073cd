// SPDX-License-Identifier: Apache-2.0
// expect: ddl: a plan or nonblocking call would refer to a temporary that is gone; name it first
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, const std::vector<float> gradient(), std::vector<float>& out) {
    ddl::allreduce_init(team, gradient(), out)();
}
#else
void call(ddl::threads& team, const std::vector<float>& gradient, std::vector<float>& out) {
    ddl::allreduce_init(team, gradient, out)();
}
#endif
