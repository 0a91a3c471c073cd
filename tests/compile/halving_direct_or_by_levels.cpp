// SPDX-License-Identifier: Apache-2.0
// expect: ddl: halving_direct_or takes a textbook schedule for many ranks
#include <ddl/allreduce.hpp>
#include <ddl/schedule/halving_direct_or.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
using schedule = ddl::halving_direct_or<3, ddl::hierarchical<ddl::direct, ddl::ring>>;
#else
using schedule = ddl::halving_direct_or<3, ddl::recursive_doubling>;
#endif

void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<schedule>(team, values); }
