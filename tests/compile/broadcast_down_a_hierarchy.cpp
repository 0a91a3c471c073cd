// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule has no program for this collective; write ddl::direct, or see docs/quick_reference.md
#include <ddl/broadcast.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

using two_level = ddl::hierarchical<ddl::direct, ddl::ring>;

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) { ddl::broadcast<two_level>(team, values); }
#else
void call(ddl::threads& team, std::vector<float>& values) { ddl::broadcast<two_level::outer>(team, values); }
#endif
