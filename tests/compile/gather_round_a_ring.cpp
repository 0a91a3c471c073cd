// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule has no program for this collective; write ddl::direct, or see docs/quick_reference.md
#include <ddl/gather.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& one, std::vector<float>& all) {
    ddl::gather<ddl::ring>(team, one, all);
}
#else
void call(ddl::threads& team, std::vector<float>& one, std::vector<float>& all) {
    ddl::gather<ddl::tree>(team, one, all);
}
#endif
