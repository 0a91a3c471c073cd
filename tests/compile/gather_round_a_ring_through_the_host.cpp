// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule has no program for this collective; write ddl::direct, or see docs/quick_reference.md
#include <ddl/gather.hpp>

#include "../collective/staged_threads.hpp"

using team_of_threads = staged_threads<ddl::threads>;
#ifdef DDL_WRONG
using schedule = ddl::ring;
#else
using schedule = ddl::tree;
#endif
void call(team_of_threads& team, std::vector<float>& values) { ddl::gather<schedule>(team, values, values); }
