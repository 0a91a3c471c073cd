// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule rotates the operands; write ddl::recursive_doubling, or mark the op with ddl::commutative
#include <ddl/reduce_scatter.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) {
    ddl::reduce_scatter<ddl::recursive_halving>(team, values, [](float, float b) { return b; });
}
#else
void call(ddl::threads& team, std::vector<float>& values) {
    ddl::reduce_scatter<ddl::direct>(team, values, [](float, float b) { return b; });
}
#endif
