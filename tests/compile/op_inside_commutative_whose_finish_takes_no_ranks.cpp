// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this op has a finish that cannot be called; write finish(accumulated, ranks) const, which returns what converts to the element
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct half_of_sum {
    float operator()(float left, float right) const { return left + right; }
#ifdef DDL_WRONG
    float finish(float total) const { return total / 2; }
#else
    float finish(float total, int) const { return total / 2; }
#endif
};
void call(ddl::threads& team, std::vector<float>& data) {
    ddl::allreduce<ddl::ring>(team, data, ddl::commutative(half_of_sum{}));
}
