// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule rotates the operands; write ddl::recursive_doubling, or mark the op with ddl::commutative
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) {
    ddl::allreduce<ddl::ring>(team, values, [](float a, float b) { return a + b; });
}
#else
void call(ddl::threads& team, std::vector<float>& values) {
    ddl::allreduce<ddl::ring>(team, values, ddl::commutative([](float a, float b) { return a + b; }));
    ddl::allreduce<ddl::recursive_doubling>(team, values, [](float a, float b) { return a + b; });
}
#endif
