// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the output is const; pass a range that can be written to
#include <ddl/reduce_scatter.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& in, const std::vector<float>& out) {
    ddl::reduce_scatter(team, in, out);
}
#else
void call(ddl::threads& team, const std::vector<float>& in, std::vector<float>& out) {
    ddl::reduce_scatter(team, in, out);
}
#endif
