// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4
#include <ddl/transport/layered.hpp>

#include <string>

#include "in_flight.hpp"

// MPI may be called by one thread alone: nonblocking collectives are carried out when they are called.

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_SINGLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

BOOST_AUTO_TEST_CASE(a_call_is_done_when_it_returns) {
    int level = MPI_THREAD_MULTIPLE;
    MPI_Query_thread(&level);
    BOOST_TEST_REQUIRE(level != MPI_THREAD_MULTIPLE);
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            auto values = values_of<std::uint32_t>(ranks.rank(), count);
            const ddl::request sum = ddl::allreduce_async(ranks, values);
            BOOST_TEST(sum.test());
            BOOST_TEST((values == fold_of<std::uint32_t>(ranks.size(), count, ddl::sum{})));
        }
    });
}

BOOST_AUTO_TEST_CASE(a_call_of_several_levels_is_done_when_it_returns_if_one_of_them_is_of_mpi) {
    ddl::shared_memory node{"alone-" + std::to_string(::getpid()), 0, 1, patient};
    ddl::shared_memory rack{"apart-" + std::to_string(::getpid()), 0, 1, patient};
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    const auto sums = [](auto levels) {
        auto values = values_of<std::uint32_t>(levels.rank(), 1000);
        const ddl::request sum = ddl::allreduce_async(levels, values);
        BOOST_TEST(sum.test());
        BOOST_TEST((values == fold_of<std::uint32_t>(levels.size(), values.size(), ddl::sum{})));
        ddl::barrier(levels);
    };
    sums(ddl::layered{node, wire});
    sums(ddl::layered{wire, node});
    sums(ddl::layered{node, rack, wire});
}

BOOST_AUTO_TEST_CASE(an_error_waits_in_its_request) {
    on_every_transport([](auto& ranks) {
        if (ranks.size() == 1) return;
        std::vector<float> unlike(ranks.rank() == 0 ? 10 : 11);
        const ddl::request sum = ddl::allreduce_async(ranks, unlike);
        const ddl::error failure = error_of([&] { sum.wait(); });
        BOOST_TEST(says(failure, ddl::errc::mismatch, "pass equal counts on every rank"), failure.what());
    });
}

BOOST_AUTO_TEST_CASE(many_calls_are_carried_out_in_their_order) {
    on_every_transport([](auto& ranks) { many_calls_in_flight(ranks); });
}

BOOST_AUTO_TEST_CASE(blocking_calls_come_after_those_before_them) {
    on_every_transport([](auto& ranks) { blocking_calls_between(ranks); });
}

BOOST_AUTO_TEST_CASE(nothing_is_left_when_a_communicator_ends) {
    on_every_transport([](auto& ranks) { communicators_that_end(ranks); });
}
