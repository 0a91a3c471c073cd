// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no contiguous range; pass a vector, an array or a span: std::span{&x, 1} for one value, std::span(data, count) for a pointer
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <cstddef>
#include <span>

#ifdef DDL_WRONG
void call(ddl::threads& team, float* data, std::size_t count) { ddl::allreduce(team, data, count, ddl::maximum{}); }
#else
void call(ddl::threads& team, float* data, std::size_t count) {
    ddl::allreduce(team, std::span(data, count), ddl::maximum{});
}
#endif
