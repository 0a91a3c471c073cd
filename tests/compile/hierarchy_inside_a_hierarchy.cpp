// SPDX-License-Identifier: Apache-2.0
// expect: ddl: a hierarchy cannot be an inner level of another; write all levels in one list, innermost first
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
using three_level = ddl::hierarchical<ddl::hierarchical<ddl::direct, ddl::ring>, ddl::tree>;
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<three_level>(team, values); }
#else
using three_level = ddl::hierarchical<ddl::direct, ddl::ring, ddl::tree>;
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<three_level>(team, values); }
#endif
