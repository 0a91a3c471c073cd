// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this op has a finish that cannot be called; write finish(accumulated, ranks) const, which returns what converts to the element
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct mean {
    static constexpr bool commutative = true;
    float operator()(float left, float right) const { return left + right; }
#ifdef DDL_WRONG
    float finish(float total, int ranks) { return total / static_cast<float>(ranks); }
#else
    float finish(float total, int ranks) const { return total / static_cast<float>(ranks); }
#endif
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce(team, data, mean{}); }
