// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4 5 8
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <numeric>

#include "world.hpp"

// Every collective beside allreduce, against its counterpart in MPI, over each kind of communicator.

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

namespace {
using vector = std::vector<std::uint32_t>;

/// A collective call of ours in one of its two forms, blocking or not.
enum class form { blocking, nonblocking };

/// `Schedule` where it has a program for a collective, else the transport's own.
template <class Schedule, ddl::collective What>
using or_tuned = std::conditional_t<ddl::offers<Schedule, What>, Schedule, ddl::tuned>;

/// How `count` elements are cut, as MPI wants to know it.
struct cut {
    cut(std::size_t count, int size) {
        for (int rank = 0; rank < size; ++rank) {
            const auto block = ddl::block(count, size, rank);
            lengths.push_back(static_cast<int>(block.count));
            firsts.push_back(static_cast<int>(block.first));
        }
    }
    std::vector<int> lengths;
    std::vector<int> firsts;
};

template <class Schedule, class Transport>
void compare_with_mpi(Transport& ranks, std::size_t count, int root, form how) {
    const MPI_Comm peers = communicator_of(ranks);
    const int rank = ranks.rank();
    const int size = ranks.size();
    const bool is_root = rank == root;
    const cut blocks{count, size};
    const auto own = static_cast<std::size_t>(blocks.lengths[static_cast<std::size_t>(rank)]);
    const auto length = static_cast<int>(count);
    const vector in = values_of<std::uint32_t>(rank, count);
    const vector mine = values_of<std::uint32_t>(rank + 50, own);
    const bool waits = how == form::blocking;
    const std::string words = std::string(Transport::name) + ", " + std::to_string(size) + " ranks, " +
                              std::to_string(count) + " elements, root " + std::to_string(root) +
                              (waits ? "" : ", nonblocking");

    vector got(own);
    vector expected(own);
    if (waits) ddl::reduce_scatter<or_tuned<Schedule, ddl::collective::reduce_scatter>>(ranks, in, got);
    else ddl::reduce_scatter_async<or_tuned<Schedule, ddl::collective::reduce_scatter>>(ranks, in, got).wait();
    MPI_Reduce_scatter(in.data(), expected.data(), blocks.lengths.data(), MPI_UINT32_T, MPI_SUM, peers);
    BOOST_TEST((got == expected), "reduce_scatter over " << words);
    vector in_place = in;
    if (waits) ddl::reduce_scatter(ranks, in_place);
    else ddl::reduce_scatter_async(ranks, in_place).wait();
    const auto first = in_place.begin() + blocks.firsts[static_cast<std::size_t>(rank)];
    BOOST_TEST(std::equal(expected.begin(), expected.end(), first), "reduce_scatter in place over " << words);

    got.assign(count, 0);
    expected.assign(count, 0);
    if (waits) ddl::all_gather<or_tuned<Schedule, ddl::collective::all_gather>>(ranks, mine, got);
    else ddl::all_gather_async<or_tuned<Schedule, ddl::collective::all_gather>>(ranks, mine, got).wait();
    MPI_Allgatherv(mine.data(), static_cast<int>(own), MPI_UINT32_T, expected.data(), blocks.lengths.data(),
                   blocks.firsts.data(), MPI_UINT32_T, peers);
    BOOST_TEST((got == expected), "all_gather over " << words);

    got.assign(count, 0);
    if (is_root) got = in;
    expected = got;
    if (waits) ddl::broadcast<or_tuned<Schedule, ddl::collective::broadcast>>(ranks, got, root);
    else ddl::broadcast_async<or_tuned<Schedule, ddl::collective::broadcast>>(ranks, got, root).wait();
    MPI_Bcast(expected.data(), length, MPI_UINT32_T, root, peers);
    BOOST_TEST((got == expected), "broadcast over " << words);

    got.assign(is_root ? count : 0, 0);
    expected = got;
    if (waits) ddl::reduce<or_tuned<Schedule, ddl::collective::reduce>>(ranks, in, got, ddl::bit_xor{}, root);
    else ddl::reduce_async<or_tuned<Schedule, ddl::collective::reduce>>(ranks, in, got, ddl::bit_xor{}, root).wait();
    MPI_Reduce(in.data(), expected.data(), length, MPI_UINT32_T, MPI_BXOR, root, peers);
    BOOST_TEST((got == expected), "reduce over " << words);

    using gathers = or_tuned<Schedule, ddl::collective::gather>;
    got.assign(is_root ? count : 0, 0);
    expected = got;
    ddl::gather_plan<std::uint32_t, gathers, Transport>{ranks, mine.data(), got.data(), count, root}();
    MPI_Gatherv(mine.data(), static_cast<int>(own), MPI_UINT32_T, expected.data(), blocks.lengths.data(),
                blocks.firsts.data(), MPI_UINT32_T, root, peers);
    BOOST_TEST((got == expected), "gather of uneven blocks over " << words);
    got.assign(own, 0);
    expected = got;
    using scatters = or_tuned<Schedule, ddl::collective::scatter>;
    ddl::scatter_plan<std::uint32_t, scatters, Transport>{ranks, is_root ? in.data() : nullptr, got.data(), count,
                                                          root}();
    MPI_Scatterv(in.data(), blocks.lengths.data(), blocks.firsts.data(), MPI_UINT32_T, expected.data(),
                 static_cast<int>(own), MPI_UINT32_T, root, peers);
    BOOST_TEST((got == expected), "scatter of uneven blocks over " << words);

    const std::size_t each = count / static_cast<std::size_t>(size);
    const std::size_t even = each * static_cast<std::size_t>(size);
    const vector part(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(each));
    got.assign(is_root ? even : 0, 0);
    expected = got;
    if (waits) ddl::gather<gathers>(ranks, part, got, root);
    else ddl::gather_async<gathers>(ranks, part, got, root).wait();
    MPI_Gather(part.data(), static_cast<int>(each), MPI_UINT32_T, expected.data(), static_cast<int>(each), MPI_UINT32_T,
               root, peers);
    BOOST_TEST((got == expected), "gather over " << words);
    const vector whole(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(even));
    got.assign(each, 0);
    expected = got;
    if (waits) ddl::scatter<scatters>(ranks, is_root ? whole : vector{}, got, root);
    else ddl::scatter_async<scatters>(ranks, whole, got, root).wait();
    MPI_Scatter(whole.data(), static_cast<int>(each), MPI_UINT32_T, expected.data(), static_cast<int>(each),
                MPI_UINT32_T, root, peers);
    BOOST_TEST((got == expected), "scatter over " << words);
    using exchanges = or_tuned<Schedule, ddl::collective::all_to_all>;
    got.assign(even, 0);
    expected = got;
    if (waits) ddl::all_to_all<exchanges>(ranks, whole, got);
    else ddl::all_to_all_async<exchanges>(ranks, whole, got).wait();
    MPI_Alltoall(whole.data(), static_cast<int>(each), MPI_UINT32_T, expected.data(), static_cast<int>(each),
                 MPI_UINT32_T, peers);
    BOOST_TEST((got == expected), "all_to_all over " << words);
    got = whole;
    if (waits) ddl::all_to_all(ranks, got);
    else ddl::all_to_all_async(ranks, got).wait();
    BOOST_TEST((got == expected), "all_to_all in place over " << words);

    const auto differ = ddl::commutative([](std::uint32_t a, std::uint32_t b) { return a ^ b; });
    got = in;
    expected.assign(count, 0);
    if (waits) ddl::allreduce(ranks, got, differ);
    else ddl::allreduce_async(ranks, got, differ).wait();
    MPI_Allreduce(in.data(), expected.data(), length, MPI_UINT32_T, MPI_BXOR, peers);
    BOOST_TEST((got == expected), "allreduce by a user's op over " << words);
    if (waits) ddl::barrier(ranks);
    else ddl::barrier_async(ranks).wait();
}

/// Lengths from none to several segments and windows, each with another root.
template <class Schedule, class Transport>
void compare_all_lengths(Transport& ranks, form how) {
    for (const std::size_t count : {0U, 1U, 5U, 64U, 1000U, 2048U, 20'001U, 300'007U})
        compare_with_mpi<Schedule>(ranks, count, static_cast<int>(count) % ranks.size(), how);
}
}  // namespace

BOOST_AUTO_TEST_CASE(over_mpi) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    compare_all_lengths<ddl::tuned>(wire, form::blocking);
    compare_all_lengths<ddl::tuned>(wire, form::nonblocking);
}

BOOST_AUTO_TEST_CASE(over_mpi_by_named_schedules) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    compare_all_lengths<ddl::direct>(wire, form::blocking);
    compare_all_lengths<ddl::ring>(wire, form::blocking);
    compare_all_lengths<ddl::tree>(wire, form::blocking);
}

BOOST_AUTO_TEST_CASE(over_clusters_whose_nodes_have_any_number_of_ranks) {
    for (const int most : {1, 2, 3, 0}) {
        ddl::cluster world{MPI_COMM_WORLD, ddl::ranks_per_node{most}, patient};
        compare_all_lengths<ddl::tuned>(world, form::blocking);
        compare_all_lengths<ddl::tuned>(world, form::nonblocking);
    }
}

BOOST_AUTO_TEST_CASE(over_groups_in_reversed_order) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    ddl::mpi group = wire.split(wire.rank() % 2, -wire.rank());
    compare_all_lengths<ddl::tuned>(group, form::blocking);
    for (const int most : {1, 2, 0}) {
        ddl::cluster world{MPI_COMM_WORLD, ddl::ranks_per_node{most}, patient};
        ddl::cluster backwards = world.split(0, -world.rank());
        BOOST_TEST(backwards.rank() == world.size() - 1 - world.rank());
        compare_all_lengths<ddl::tuned>(backwards, form::blocking);
        ddl::cluster halves = world.split(world.rank() % 2, -world.rank());
        compare_all_lengths<ddl::tuned>(halves, form::nonblocking);
    }
}
