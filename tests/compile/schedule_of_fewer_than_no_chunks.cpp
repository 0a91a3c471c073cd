// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the rounds of this schedule do not add up to this collective; ask ddl::prove_allreduce why, see docs/adding_a_schedule.md
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct without_chunks {
    static constexpr int chunks(int size) { return -size; }
    static constexpr int rounds(int) { return 1; }
    static constexpr ddl::transfer_list<1> round(int, int, int) { return {}; }
};

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<without_chunks>(team, data); }
#else
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<ddl::ring>(team, data); }
#endif
