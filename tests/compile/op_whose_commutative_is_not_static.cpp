// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this op has a commutative that cannot be read; write static constexpr bool commutative
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct added {
#ifdef DDL_WRONG
    const bool commutative = true;
#else
    static constexpr bool commutative = true;
#endif
    float operator()(float left, float right) const { return left + right; }
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce(team, data, added{}); }
