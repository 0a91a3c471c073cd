// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/adding_a_schedule.md that are not in examples/own_schedule.cpp.
// prints: a wrong result in the end: rank 0 after round 3, chunk 1
// prints: allreduce of 5000 float32 (20000 bytes) by sum over threads, 4 ranks: there_and_back, walked round by round through windows of 262144 bytes, as it was named
#include <ddl/allreduce.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/transport/threads.hpp>

#include <cstdio>
#include <vector>

//! [flaw]
struct ring_that_stops_early : ddl::ring {
    static constexpr int rounds(int size) { return ddl::ring::rounds(size) - 1; }
};
constexpr ddl::proof found = ddl::prove_allreduce(ddl::allreduce_program<ring_that_stops_early>(3));
static_assert(found.what == ddl::flaw::wrong_result, "a contribution that never came is missed");
//! [flaw]

//! [composed]
/// The ring's reduce-scatter, and then the same backwards.
struct there_and_back {
    static constexpr const char* name = "there_and_back";
    static constexpr auto reduce_scatter(int size) { return ddl::reduce_scatter_program<ddl::ring>(size); }
    static constexpr auto all_gather(int size) {
        auto forward = reduce_scatter(size);
        return ddl::mirror<decltype(forward)>{forward};
    }
};
static_assert(ddl::proves_allreduce<there_and_back>(5));
static_assert(ddl::proves_reduce_scatter<there_and_back>(5) && ddl::proves_all_gather<there_and_back>(5));
static_assert(ddl::proves_broadcast<there_and_back>(5, 3), "halves give the rooted collectives too");
//! [composed]

//! [program]
/// Rank 0 tells rank 1, which tells rank 2, and so on.
struct whisper {
    int ranks;
    constexpr int size() const { return ranks; }
    constexpr int chunks() const { return 1; }
    constexpr int rounds() const { return ranks - 1; }
    constexpr int width(int rank, int round) const { return rank == round || rank == round + 1 ? 1 : 0; }
    constexpr ddl::transfer at(int rank, int round, int) const {
        if (rank == round) return {ddl::action::send, rank + 1, 0};
        return {ddl::action::receive, rank - 1, 0};
    }
};
static_assert(ddl::program<whisper>);
static_assert(ddl::prove_broadcast(whisper{5}, 0));
//! [program]

//! [tuning]
using mine = ddl::selected<ddl::at_most<16384, ddl::direct>, ddl::otherwise<there_and_back>>;
static_assert(ddl::proves_allreduce<mine>(5), "all choices");

template <>
struct ddl::default_schedule<ddl::collective::allreduce, true, ddl::threads> {  // true: for ops that commute
    using type = mine;
};
//! [tuning]

int main() {
    std::printf("%s: rank %d after round %d, chunk %d\n", ddl::to_string(found.what), found.rank, found.round,
                found.chunk);
    ddl::threads::run(4, [](ddl::threads& team) {
        std::vector<float> values(5000, 1.0F);
        auto plan = ddl::allreduce_init(team, values);
        plan();
        if (team.rank() == 0) std::printf("%s\n", ddl::explain(plan).c_str());
    });
}
