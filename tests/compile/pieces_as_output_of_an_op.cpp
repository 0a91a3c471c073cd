// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no contiguous range; pass a vector, an array or a span: std::span{&x, 1} for one value, std::span(data, count) for a pointer
#include <ddl/reduce.hpp>
#include <ddl/transport/threads.hpp>

#include <deque>
#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& in, std::deque<float>& out) {
    ddl::reduce(team, in, out, ddl::sum{}, 0);
}
#else
void call(ddl::threads& team, std::vector<float>& in, std::vector<float>& out) {
    ddl::reduce(team, in, out, ddl::sum{}, 0);
}
#endif
