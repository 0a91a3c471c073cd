// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no contiguous range; pass a vector, an array or a span: std::span{&x, 1} for one value, std::span(data, count) for a pointer
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<bool>& in, std::vector<bool>& out) {
    ddl::allreduce(team, in, out, ddl::logical_or{});
}
#else
void call(ddl::threads& team, std::vector<char>& in, std::vector<char>& out) {
    ddl::allreduce(team, in, out, ddl::logical_or{});
}
#endif
