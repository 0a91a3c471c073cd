// SPDX-License-Identifier: Apache-2.0
// A schedule of one's own, proved by the compiler, then run.
// prints: allreduce of 3 float64 (24 bytes) by sum over threads, 5 ranks:
//         chain, walked round by round through windows of 262144 bytes, as it was named
// prints: every rank holds 15 15 15
#include <ddl/allreduce.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/transport/threads.hpp>

#include <array>
#include <cstdio>

//! [schedule]
/// The chain: a partial sum is handed on from rank 0 to the last rank, then the result comes back the same way.
///
/// Cost: `2(p-1)` steps, of which each rank takes part in four at most; `2n` bytes sent a rank.
/// Order: keeps rank order.
struct chain {
    static constexpr const char* name = "chain";  // for ddl::explain; may be left out
    static constexpr int chunks(int) { return 1; }
    static constexpr int rounds(int size) { return 2 * (size - 1); }

    /// What `rank` does in round `k`: nothing, or one transfer of chunk 0.
    static constexpr ddl::transfer_list<1> round(int rank, int size, int k) {
        const int last = size - 1;
        const bool upwards = k < last;
        const int from = upwards ? k : 2 * last - k;  // who speaks in this round
        const int to = upwards ? from + 1 : from - 1;
        if (rank == from) return {{{ddl::action::send, to, 0}}, 1};
        if (rank == to) return {{{upwards ? ddl::action::receive_reduce : ddl::action::receive, from, 0}}, 1};
        return {};
    }
};
//! [schedule]

//! [proof]
static_assert(ddl::proves_allreduce<chain>(2) && ddl::proves_allreduce<chain>(5) && ddl::proves_allreduce<chain>(16));
static_assert(ddl::keeps_rank_order<chain>, "so ops that do not commute may use it too");
//! [proof]

int main() {
    ddl::threads::run(5, [](ddl::threads& team) {
        std::array<double, 3> values;
        values.fill(team.rank() + 1);
        //! [run]
        auto plan = ddl::allreduce_init<chain>(team, values);
        plan();
        //! [run]
        if (team.rank() != 0) return;
        std::printf("%s\n", ddl::explain(plan).c_str());
        std::printf("every rank holds %g %g %g\n", values[0], values[1], values[2]);
    });
}
