// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 4 6 8
// mpich-ranks: 1 2 4
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>
#include <ddl/transport/layered.hpp>

#include <cstdio>

#include "world.hpp"

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

namespace {
/// Shared memory of the ranks that `first` and the `size - 1` behind it are, without a cluster to make it.
ddl::shared_memory shared_by(int first, int size) {
    static int made = 0;
    char job[64] = {};
    std::snprintf(job, sizeof job, "layered-%ld-%d", static_cast<long>(::getpid()), made++);
    MPI_Comm all = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, first, world_rank(), &all);
    MPI_Bcast(job, sizeof job, MPI_CHAR, 0, all);
    MPI_Comm_free(&all);
    return {job, world_rank() - first, size, patient};
}

/// Sizes of nodes that cut all ranks evenly.
std::vector<int> node_sizes() {
    std::vector<int> sizes;
    for (int each = 1; each <= world_size(); ++each)
        if (world_size() % each == 0) sizes.push_back(each);
    return sizes;
}

constexpr std::size_t lengths[] = {0, 1, 7, 3000, 100'001};

/// All that a stack of transports carries.
template <class Levels>
void expect_all_collectives(Levels& levels) {
    const int rank = levels.rank();
    const int size = levels.size();
    BOOST_TEST(rank == world_rank());
    BOOST_TEST(size == world_size());
    for (const std::size_t count : lengths) {
        const auto in = values_of<std::uint32_t>(rank, count);
        const auto expected = fold_of<std::uint32_t>(size, count, ddl::sum{});
        std::vector<std::uint32_t> out(count);
        const auto by = [&]<class Schedule>(Schedule) {
            out.assign(count, 0);
            ddl::allreduce<Schedule>(levels, in, out);
            BOOST_TEST((out == expected), count << " elements by " << Schedule::name);
        };
        by(ddl::tuned{});
        by(ddl::ring{});
        by(ddl::recursive_doubling{});
        by(ddl::hierarchical<ddl::direct, ddl::ring>{});
        by(ddl::hierarchical<ddl::ring, ddl::recursive_halving>{});
        by(ddl::hierarchical<ddl::direct, ddl::ring, ddl::direct>{});

        auto lines = values_of<line>(rank, count);
        ddl::allreduce(levels, lines, compose{});
        BOOST_TEST((lines == fold_of<line>(size, count, compose{})), "an op that needs the order of ranks");

        const int root = static_cast<int>(count) % size;
        std::vector<std::uint32_t> reduced(rank == root ? count : 0);
        ddl::reduce(levels, in, reduced, ddl::sum{}, root);
        if (rank == root) BOOST_TEST((reduced == expected));
        out = in;
        ddl::broadcast(levels, out, root);
        BOOST_TEST((out == values_of<std::uint32_t>(root, count)));
        ddl::barrier(levels);
        out = in;
        ddl::allreduce_async(levels, out).wait();
        BOOST_TEST((out == expected), "in the background");

        if (size == 1) continue;
        const ddl::error failure =
            error_of([&] { ddl::allreduce(levels, std::vector<float>(count + (rank == root))); });
        BOOST_TEST(says(failure, ddl::errc::mismatch, "pass equal counts on every rank"), failure.what());
    }
    auto halves = values_of<ddl::half>(rank, 1000);
    ddl::allreduce(levels, halves, ddl::average{});
    BOOST_TEST(same_bits_everywhere<ddl::half>(MPI_COMM_WORLD, halves));
}
}  // namespace

BOOST_AUTO_TEST_CASE(shared_memory_inside_and_mpi_across) {
    ddl::mpi world{MPI_COMM_WORLD, patient};
    for (const int members : node_sizes()) {
        const int first = world_rank() / members * members;
        ddl::shared_memory node = shared_by(first, members);
        ddl::mpi wire = world.split(world_rank() % members, world_rank());
        ddl::layered levels{node, wire};
        expect_all_collectives(levels);
        std::vector<float> data(10);
        const std::string line = ddl::explain(ddl::allreduce_init(levels, data)).c_str();
        BOOST_TEST(line.find("inside shared_memory with " + std::to_string(members) + " ranks, across mpi") !=
                       std::string::npos,
                   line);
    }
}

BOOST_AUTO_TEST_CASE(mpi_inside_and_across) {
    ddl::mpi world{MPI_COMM_WORLD, patient};
    for (const int members : node_sizes()) {
        ddl::mpi node = world.split(world_rank() / members, world_rank());
        ddl::mpi wire = world.split(world_rank() % members, world_rank());
        ddl::layered levels{node, wire};
        expect_all_collectives(levels);
    }
}

BOOST_AUTO_TEST_CASE(three_levels) {
    ddl::mpi world{MPI_COMM_WORLD, patient};
    if (world_size() % 4 != 0) return;
    ddl::shared_memory pair = shared_by(world_rank() / 2 * 2, 2);
    ddl::mpi pairs = world.split(world_rank() / 4 * 2 + world_rank() % 2, world_rank());
    ddl::mpi fours = world.split(world_rank() % 4, world_rank());
    ddl::layered levels{pair, pairs, fours};
    expect_all_collectives(levels);
}

BOOST_AUTO_TEST_CASE(made_on_the_spot) {
    ddl::mpi world{MPI_COMM_WORLD, patient};
    ddl::shared_memory node = shared_by(0, world_size());
    ddl::mpi alone = world.split(world_rank(), 0);
    auto values = values_of<std::uint32_t>(world_rank(), 100);
    ddl::allreduce(ddl::layered{node, alone}, values);
    BOOST_TEST((values == fold_of<std::uint32_t>(world_size(), 100, ddl::sum{})));
}
