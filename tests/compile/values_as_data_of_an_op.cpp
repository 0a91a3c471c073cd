// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no contiguous range; pass a vector, an array or a span: std::span{&x, 1} for one value, std::span(data, count) for a pointer
#include <ddl/reduce.hpp>
#include <ddl/transport/threads.hpp>

#include <complex>
#include <span>

using value = std::complex<double>;
#ifdef DDL_WRONG
void call(ddl::threads& team, value& mine, value& all) { ddl::reduce(team, mine, all, ddl::sum{}, 0); }
#else
void call(ddl::threads& team, value& mine, value& all) {
    ddl::reduce(team, std::span{&mine, 1}, std::span{&all, 1}, ddl::sum{}, 0);
}
#endif
