// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4
#include "in_flight.hpp"

// MPI may be called by any thread: collectives go on in the background.

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

BOOST_AUTO_TEST_CASE(many_calls_are_carried_out_in_their_order) {
    on_every_transport([](auto& ranks) { many_calls_in_flight(ranks); });
}

BOOST_AUTO_TEST_CASE(blocking_calls_come_after_those_that_are_pending) {
    on_every_transport([](auto& ranks) { blocking_calls_between(ranks); });
}

BOOST_AUTO_TEST_CASE(what_is_pending_is_carried_out_before_a_communicator_ends) {
    on_every_transport([](auto& ranks) { communicators_that_end(ranks); });
}

BOOST_AUTO_TEST_CASE(communicators_go_on_side_by_side_in_any_order) {
    on_every_transport([](auto& ranks) {
        auto one = ranks.split(0, 0);
        auto other = ranks.split(0, 0);
        for (int turn = 0; turn < 5; ++turn) {
            auto a = values_of<std::uint32_t>(ranks.rank(), 50'000);
            auto b = values_of<std::uint32_t>(ranks.rank(), 1000);
            std::vector<ddl::request> both;
            const bool turned = ranks.rank() % 2 == turn % 2;
            if (turned) both.push_back(ddl::allreduce_async(other, b));
            both.push_back(ddl::allreduce_async(one, a));
            if (!turned) both.push_back(ddl::allreduce_async(other, b));
            for (const auto& each : both) each.wait();
            BOOST_TEST((a == fold_of<std::uint32_t>(ranks.size(), a.size(), ddl::sum{})));
            BOOST_TEST((b == fold_of<std::uint32_t>(ranks.size(), b.size(), ddl::sum{})));
        }
    });
}

BOOST_AUTO_TEST_CASE(a_call_is_not_done_before_all_ranks_have_come) {
    on_every_transport([](auto& ranks) {
        if (ranks.size() == 1) return;
        std::vector<std::uint32_t> values(1000, 1);
        ddl::request sum;
        if (ranks.rank() != 0) {
            sum = ddl::allreduce_async(ranks, values);
            BOOST_TEST(!sum.test());
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (ranks.rank() == 0) sum = ddl::allreduce_async(ranks, values);
        sum.wait();
        BOOST_TEST(values[7] == static_cast<std::uint32_t>(ranks.size()));
    });
}

BOOST_AUTO_TEST_CASE(what_is_pending_is_carried_out_before_a_communicator_moves) {
    on_every_transport([](auto& ranks) {
        auto one = ranks.split(0, 0);
        auto values = values_of<std::uint32_t>(ranks.rank(), 200'000);
        const ddl::request sum = ddl::allreduce_async(one, values);
        auto other = std::move(one);
        BOOST_TEST(sum.test());
        BOOST_TEST((values == fold_of<std::uint32_t>(ranks.size(), values.size(), ddl::sum{})));
        ddl::barrier(other);
        for (const auto& call : {+[](decltype(one)& gone) { ddl::barrier(gone); },
                                 +[](decltype(one)& gone) { ddl::barrier_async(gone).wait(); },
                                 +[](decltype(one)& gone) { gone.split(0, 0); }}) {
            const ddl::error failure = error_of([&] { call(one); });
            BOOST_TEST(says(failure, ddl::errc::broken, "use the one it moved to"), failure.what());
        }
    });
}
