// SPDX-License-Identifier: Apache-2.0
// expect: ddl: a plan or nonblocking call would refer to a temporary that is gone; name it first
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <span>
#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& out) {
    ddl::allreduce_async(team, std::vector<float>(9), out).wait();
}
#else
void call(ddl::threads& team, std::vector<float>& out) {
    ddl::allreduce(team, std::vector<float>(out.size()), out);
    ddl::allreduce_async(team, std::span<const float>(out), std::span(out));
}
#endif
