// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/concepts.md and docs/quick_reference.md.
// prints: of 10 elements rank 0 owns 4 from 0 on
// prints: allreduce, rank 0, round 0: rank 1 brings 99 elements, this rank 100; pass equal counts on every rank
// prints: allreduce of 100 float32 (400 bytes) by sum over threads, 3 ranks: direct, one-shot: so few bytes are staged once, and every rank folds all of them
#include <ddl/all_gather.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/buffer.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/threads.hpp>

#include <cstdio>
#include <vector>

//! [instantiation]
template class ddl::allreduce_plan<ddl::sum, float, ddl::ring, ddl::threads>;
//! [instantiation]

void in_place(ddl::threads& team) {
    //! [in_place]
    std::vector<float> gradient(1000, 1.0F);
    ddl::allreduce(team, gradient);  // in place, by ddl::sum, by the schedule that suits the transport

    std::vector<float> largest(1000);
    ddl::allreduce(team, gradient, largest, ddl::maximum{});     // out of place: `gradient` stays as it is
    ddl::allreduce<ddl::ring>(team, gradient, ddl::average{});   // the schedule named
    ddl::allreduce<ddl::tuned, ddl::unchecked>(team, gradient);  // ranks do not compare their calls
    //! [in_place]
}

void blocks(ddl::threads& team) {
    //! [blocks]
    std::vector<float> whole(10, 1.0F);
    const ddl::block_of mine = ddl::block(whole.size(), team.size(), team.rank());  // on 3 ranks: 4, 3 and 3 elements

    std::vector<float> part(mine.count);
    ddl::reduce_scatter(team, whole, part);  // block `rank` of the sum
    ddl::all_gather(team, part, whole);      // all blocks, on every rank
    //! [blocks]
    if (team.rank() == 0) std::printf("of 10 elements rank 0 owns %zu from %zu on\n", mine.count, mine.first);
}

void mismatch(ddl::threads& team) {
    //! [mismatch]
    std::vector<float> values(team.rank() == 1 ? 99 : 100);
    try {
        ddl::allreduce(team, values);
    } catch (const ddl::error& failure) {
        if (failure.code() != ddl::errc::mismatch) throw;
        if (team.rank() == 0) std::printf("%s\n", failure.what());
    }  // every rank comes here; nothing was written, and `team` is as good as before
    //! [mismatch]
}

void plan(ddl::threads& team) {
    std::vector<float> gradient(100, 1.0F);
    //! [plan]
    auto step = ddl::allreduce_init(team, gradient);  // refers to `team` and to the elements of `gradient`
    for (int i = 0; i < 3; ++i) step();
    //! [plan]
    if (team.rank() == 0) std::printf("%s\n", ddl::explain(step).c_str());
}

void split(ddl::threads& team) {
    //! [split]
    auto half = team.split(team.rank() % 2, team.rank());  // color, key: the ranks of one color, in order of their keys
    half.set_timeout(ddl::timeout{30});                    // seconds; or std::chrono::minutes{1}
    std::vector<int> values(8, half.rank());
    ddl::allreduce(half, values);
    //! [split]
}

void processes() {
    //! [buffer]
    ddl::shared_memory node;                      // from RANK, WORLD_SIZE and DDL_JOB; alone if they are not set
    ddl::buffer<float> weights{node, 1'000'000};  // zero at first, and mapped by all ranks of the node
    ddl::allreduce(node, weights);                // nothing is copied
    //! [buffer]
}

int main() {
    ddl::threads::run(3, [](ddl::threads& team) {
        in_place(team);
        blocks(team);
        mismatch(team);
        plan(team);
        split(team);
    });
    processes();
}
