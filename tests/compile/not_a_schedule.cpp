// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no schedule; write ddl::ring, or see docs/adding_a_schedule.md
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
struct round_and_round {
    static constexpr int chunks(int size) { return size; }
};
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<round_and_round>(team, values); }
#else
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<ddl::ring>(team, values); }
#endif
