// SPDX-License-Identifier: Apache-2.0
// ranks: 2
// mpich-ranks: none; gigabytes take it minutes where cores are shared
// lock: memory
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>

#include "free_memory.hpp"
#include "world.hpp"

// More elements than an `int` counts.

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

namespace {
constexpr std::size_t count = (std::size_t{1} << 31) + 5;

/// Rank 0's answer, so that both ranks do the same. A vector a rank, and what MPI keeps for messages under way.
boost::test_tools::assertion_result memory_for_long_vectors(boost::unit_test::test_unit_id) {
    int enough = free_memory() >= 16.0 * (1U << 30);
    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    boost::test_tools::assertion_result answer{enough != 0 && world_size() == 2};
    answer.message() << (world_size() == 2 ? "less than 16 GiB of memory are free" : "it takes two ranks");
    return answer;
}

std::int8_t value(int rank, std::size_t i) {
    return static_cast<std::int8_t>(
        (static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(rank)) * 2'654'435'761U >> 24);
}

/// Places where `values` is not what `expected(i)` says.
template <class Expected>
std::size_t wrong_places(const std::vector<std::int8_t>& values, Expected expected) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != expected(i);
    return wrong;
}

template <class Schedule, class Transport>
void reduce_and_broadcast(Transport& ranks) {
    std::vector<std::int8_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value(ranks.rank(), i);
    ddl::allreduce<Schedule>(ranks, values);
    BOOST_TEST(wrong_places(values, [](std::size_t i) { return ddl::sum{}(value(0, i), value(1, i)); }) == 0U);
    if (ranks.rank() == 1) values.assign(count, 7);
    ddl::broadcast(ranks, values, 1);
    BOOST_TEST(wrong_places(values, [](std::size_t) { return std::int8_t{7}; }) == 0U);
}
}  // namespace

BOOST_AUTO_TEST_CASE(more_than_two_to_the_31_elements_over_mpi,
                     *boost::unit_test::precondition(memory_for_long_vectors)) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    reduce_and_broadcast<ddl::tuned>(wire);
}

BOOST_AUTO_TEST_CASE(more_than_two_to_the_31_elements_over_shared_memory,
                     *boost::unit_test::precondition(memory_for_long_vectors)) {
    ddl::cluster world{MPI_COMM_WORLD, patient};
    reduce_and_broadcast<ddl::tuned>(world);
}

BOOST_AUTO_TEST_CASE(more_than_two_to_the_31_elements_by_levels,
                     *boost::unit_test::precondition(memory_for_long_vectors)) {
    ddl::cluster world{MPI_COMM_WORLD, ddl::ranks_per_node{1}, patient};
    reduce_and_broadcast<ddl::hierarchical<ddl::direct, ddl::ring>>(world);
}
