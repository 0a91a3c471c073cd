// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no contiguous range; pass a vector, an array or a span: std::span{&x, 1} for one value, std::span(data, count) for a pointer
#include <ddl/reduce.hpp>
#include <ddl/transport/threads.hpp>

#include <span>

#ifdef DDL_WRONG
void call(ddl::threads& team, const float* in, float* out) { ddl::reduce(team, in, out); }
#else
void call(ddl::threads& team, const float* in, float* out) { ddl::reduce(team, std::span{in, 9}, std::span{out, 9}); }
#endif
