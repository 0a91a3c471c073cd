// SPDX-License-Identifier: Apache-2.0
// Two levels, each with a transport and a schedule of its own. Both are threads here, so that it runs anywhere; on a
// cluster, `node` is a ddl::shared_memory and `wire` a ddl::mpi, and ddl::cluster makes both.
// prints: rank 5 of 6 is rank 1 of its node and talks to 2 ranks on other nodes
// prints: allreduce of 1000 float32 (4000 bytes) by sum over layered, 6 ranks:
//         hierarchical<direct, ring>, inside threads with 2 ranks, across threads with 3
// prints: every rank holds 21
#include <ddl/allreduce.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/transport/layered.hpp>
#include <ddl/transport/threads.hpp>

#include <cstdio>
#include <vector>

//! [schedule]
using two_level = ddl::hierarchical<ddl::direct, ddl::ring>;                  // inside a node, then across nodes
static_assert(ddl::proves_allreduce<two_level>(ddl::shape{2, 3}));            // 3 nodes of 2 ranks
static_assert(ddl::proves_allreduce<two_level>(ddl::shape::ragged({4}, 7)));  // uneven nodes: 4 ranks and 3
//! [schedule]

int main() {
    ddl::threads::run(6, [](ddl::threads& world) {
        //! [layers]
        constexpr int ranks_per_node = 2;
        ddl::threads node = world.split(world.rank() / ranks_per_node, world.rank());  // those on my node
        ddl::threads wire = world.split(world.rank() % ranks_per_node, world.rank());  // those like me on other nodes

        ddl::layered levels{node, wire};  // innermost first
        std::vector<float> gradient(1000, static_cast<float>(levels.rank() + 1));
        ddl::allreduce<two_level>(levels, gradient);
        //! [layers]
        if (levels.rank() != levels.size() - 1) return;
        std::printf("rank %d of %d is rank %d of its node and talks to %d ranks on other nodes\n", levels.rank(),
                    levels.size(), node.rank(), wire.size() - 1);
        std::printf("%s\n", ddl::explain(ddl::allreduce_init<two_level>(levels, gradient)).c_str());
        std::printf("every rank holds %g\n", gradient[0]);
    });
}
