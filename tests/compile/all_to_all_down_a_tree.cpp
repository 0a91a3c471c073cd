// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule has no program for this collective; write ddl::direct, or see docs/quick_reference.md
#include <ddl/all_to_all.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) { ddl::all_to_all<ddl::tree>(team, values); }
#else
void call(ddl::threads& team, std::vector<float>& values) { ddl::all_to_all<ddl::ring>(team, values); }
#endif
