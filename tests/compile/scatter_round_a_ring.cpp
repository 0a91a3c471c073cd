// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule has no program for this collective; write ddl::direct, or see docs/quick_reference.md
#include <ddl/scatter.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& all, std::vector<float>& one) {
    ddl::scatter<ddl::ring>(team, all, one);
}
#else
void call(ddl::threads& team, std::vector<float>& all, std::vector<float>& one) {
    ddl::scatter<ddl::tree>(team, all, one);
}
#endif
