// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this op has a name that cannot be read; write static constexpr const char* name
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <string_view>
#include <vector>

struct added {
#ifdef DDL_WRONG
    static constexpr std::string_view name = "added";
#else
    static constexpr const char* name = "added";
#endif
    float operator()(float left, float right) const { return left + right; }
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce(team, data, ddl::commutative(added{})); }
