// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this op has no meaning for this element; pick another, or give yours an operator()
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce(team, values, ddl::bit_and{}); }
#else
void call(ddl::threads& team, std::vector<unsigned>& values) { ddl::allreduce(team, values, ddl::bit_and{}); }
#endif
