// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the rounds of this schedule do not add up to this collective; ask ddl::prove_allreduce why, see docs/adding_a_schedule.md
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct ring_that_stops_early : ddl::ring {
    static constexpr int rounds(int size) { return ddl::ring::rounds(size) - 1; }
};

template <>
struct ddl::default_schedule<ddl::collective::allreduce, true, ddl::threads> {
#ifdef DDL_WRONG
    using type = ring_that_stops_early;
#else
    using type = ddl::ring;
#endif
};

void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce(team, data); }
