// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this op has no meaning for this element; pick another, or give yours an operator()
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
struct newest {};
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce(team, values, newest{}); }
#else
struct newest {
    float operator()(float, float b) const { return b; }
};
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce(team, values, newest{}); }
#endif
