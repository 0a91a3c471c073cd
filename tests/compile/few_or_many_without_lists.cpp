// SPDX-License-Identifier: Apache-2.0
// expect: ddl: few_or_many takes schedules whose rounds are transfer lists
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
using schedule = ddl::few_or_many<16, ddl::direct, ddl::recursive_halving>;
#else
using schedule = ddl::few_or_many<16, ddl::ring, ddl::recursive_halving>;
#endif

void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<schedule>(team, values); }
