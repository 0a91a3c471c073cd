// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <poll.h>
#include <span>
#include <tuple>

#include "oracle.hpp"
#include "places.hpp"

namespace {

using every_place = std::tuple<places::threads, places::processes, places::messages<1>>;
constexpr int timeout_ms = 20'000;

std::vector<int> ones(std::size_t count) { return std::vector<int>(count, 1); }

template <class Ranks>
void require_all(Ranks& ranks, const std::vector<int>& data, int wanted) {
    for (const int each : data)
        require(each == wanted, "rank " + std::to_string(ranks.rank()) + " has " + std::to_string(each) + ", not " +
                                    std::to_string(wanted));
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(each_collective_is_done_when_its_request_says_so, Place, every_place) {
    Place::run(3, [](auto& ranks) {
        const auto in = ones(12);
        const auto own = ones(4);
        std::vector<int> summed(12), scattered_sum(4), gathered(12), spread(12), reduced(12), collected(12), dealt(4),
            exchanged(12);
        if (ranks.rank() == 1) spread = ones(12);
        const std::vector<ddl::request> all{
            ddl::allreduce_async(ranks, in, summed),
            ddl::reduce_scatter_async(ranks, in, scattered_sum),
            ddl::all_gather_async(ranks, own, gathered),
            ddl::broadcast_async(ranks, spread, 1),
            ddl::reduce_async(ranks, in, reduced, ddl::sum{}, 2),
            ddl::gather_async(ranks, own, collected, 0),
            ddl::scatter_async(ranks, in, dealt, 2),
            ddl::all_to_all_async(ranks, in, exchanged),
            ddl::barrier_async(ranks),
        };
        for (auto last = all.rbegin(); last != all.rend(); ++last) last->wait();
        require_all(ranks, summed, 3);
        require_all(ranks, scattered_sum, 3);
        require_all(ranks, gathered, 1);
        require_all(ranks, spread, 1);
        require_all(ranks, reduced, ranks.rank() == 2 ? 3 : 0);
        require_all(ranks, collected, ranks.rank() == 0 ? 1 : 0);
        require_all(ranks, dealt, 1);
        require_all(ranks, exchanged, 1);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(many_may_be_under_way, Place, every_place) {
    Place::run(2, [](auto& ranks) {
        std::vector<std::vector<int>> data(100);
        std::vector<ddl::request> under_way;
        for (std::size_t i = 0; i < data.size(); ++i) {
            data[i].assign(i % 7 == 0 ? 5000 : i, static_cast<int>(i));
            under_way.push_back(ddl::allreduce_async(ranks, data[i]));
        }
        under_way.back().wait();
        for (std::size_t i = 0; i < data.size(); ++i) {
            require(under_way[i].test(), "an earlier one is not done");
            require_all(ranks, data[i], 2 * static_cast<int>(i));
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_blocking_call_comes_after_those_under_way, Place, every_place) {
    Place::run(3, [](auto& ranks) {
        auto data = ones(6000);
        const auto first = ddl::allreduce_async(ranks, data);
        const auto second = ddl::allreduce_async(ranks, data);
        ddl::allreduce(ranks, data);
        require_all(ranks, data, 27);
        require(first.test() && second.test(), "it overtook them");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_blocking_call_leaves_the_memory_of_those_under_way_alone, Place, every_place) {
    Place::run(3, [](auto& ranks) {
        for (int i = 0; i < 20; ++i) {
            // all of these keep their values in memory of the communicator's
            std::vector<std::vector<int>> tensors{ones(3000), ones(5)};
            std::vector<std::vector<int>> others{std::vector<int>(4000, 10), std::vector<int>(7, 10)};
            const auto under_way =
                ddl::allreduce_n_async(ranks, std::vector<std::span<int>>(tensors.begin(), tensors.end()));
            ddl::allreduce_n(ranks, others);
            under_way.wait();
            require_all(ranks, tensors[0], 3);
            require_all(ranks, others[0], 30);

            std::vector<int> exchanged(3000, ranks.rank());
            std::vector<int> again(6000, 10 + ranks.rank());
            const auto first = ddl::all_to_all_async(ranks, exchanged);
            ddl::all_to_all(ranks, again);
            first.wait();
            for (std::size_t k = 0; k < 3000; ++k)
                require(exchanged[k] == static_cast<int>(k / 1000), "another rank's block");
            for (std::size_t k = 0; k < 6000; ++k)
                require(again[k] == 10 + static_cast<int>(k / 2000), "another rank's block");
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(test_does_not_block, Place, every_place) {
    std::atomic<bool> may_come{false};
    Place::run(2, [&](auto& ranks) {
        auto data = ones(10);
        if (ranks.rank() == 0) {
            const auto under_way = ddl::allreduce_async(ranks, data);
            require(!under_way.test(), "it is done before rank 1 has come");
            may_come = true;
            while (!under_way.test()) sched_yield();
        } else {
            while (!may_come) sched_yield();
            ddl::allreduce(ranks, data);
        }
        require_all(ranks, data, 2);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_descriptor_becomes_readable, Place, every_place) {
    std::atomic<bool> may_come{false};
    Place::run(2, [&](auto& ranks) {
        auto data = ones(10);
        if (ranks.rank() == 1)
            while (!may_come) sched_yield();
        const auto under_way = ddl::allreduce_async(ranks, data);
        pollfd ready{under_way.descriptor(), POLLIN, 0};
        if (ranks.rank() == 0) {
            require(::poll(&ready, 1, 0) == 0, "it is readable before rank 1 has come");
            may_come = true;
        }
        require(::poll(&ready, 1, timeout_ms) == 1 && (ready.revents & POLLIN) != 0, "it did not become readable");
        require(under_way.test(), "it is readable and not done");
        require_all(ranks, data, 2);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_function_is_called_when_it_is_done, Place, every_place) {
    Place::run(2, [](auto& ranks) {
        auto data = ones(10);
        std::atomic<int> called{0};
        const auto under_way = ddl::allreduce_async(ranks, data);
        under_way.on_completion([&](std::exception_ptr failure) { called = failure ? -1 : 1; });
        under_way.wait();
        while (called == 0) sched_yield();  // `wait` may return while the function still runs
        require(called == 1, "it was told of a failure");
        int at_once = 0;
        under_way.on_completion([&](std::exception_ptr) { ++at_once; });
        require(at_once == 1, "the call is done, and the function was not called at once");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(errors_arrive_where_somebody_waits, Place, every_place) {
    Place::run(2, [](auto& ranks) {
        std::vector<int> unlike(ranks.rank() == 0 ? 3 : 4);
        auto data = ones(4);
        const auto wrong = ddl::allreduce_async(ranks, unlike);
        const auto right = ddl::allreduce_async(ranks, data);
        right.wait();
        require_all(ranks, data, 2);
        require_error(ddl::errc::mismatch, "pass equal counts on every rank", [&] { wrong.wait(); });
        require_error(ddl::errc::mismatch, "pass equal counts on every rank", [&] { wrong.test(); });
        bool told = false;
        wrong.on_completion([&](std::exception_ptr failure) { told = failure != nullptr; });
        require(told, "the function was not told");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(invalid_arguments_are_refused_at_once, Place, every_place) {
    Place::run(2, [](auto& ranks) {
        const auto in = ones(4);
        std::vector<int> out(ranks.rank() == 0 ? 3 : 4);
        if (ranks.rank() == 0) {
            require_error(ddl::errc::invalid_argument, "out holds 3 elements",
                          [&] { ddl::allreduce_async(ranks, in, out); });
        } else {
            const auto under_way = ddl::allreduce_async(ranks, in, out);
            require_error(ddl::errc::mismatch, "rank 0 has called with invalid arguments", [&] { under_way.wait(); });
        }
        ddl::barrier(ranks);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_plan_is_started_by_its_own_communicator_alone, Place, every_place) {
    Place::run(2, [](auto& ranks) {
        auto part = ranks.split(0, ranks.rank());
        auto data = ones(10);
        auto plan = ddl::allreduce_init(part, data);
        require(&plan.ranks() == &part, "it names another communicator");
        require_error(ddl::errc::invalid_argument,
                      "start, rank " + std::to_string(ranks.rank()) + ": the plan is of another communicator",
                      [&] { ddl::start(ranks, plan); });
        require_all(ranks, data, 1);
        ddl::start(part, plan).wait();
        ddl::start(plan).wait();
        require_all(ranks, data, 4);
        if (ranks.rank() == 0)
            require_error(ddl::errc::invalid_argument, "pass the one that it was made with",
                          [&] { ddl::start(ranks, plan); });
        else require_error(ddl::errc::mismatch, "rank 0 has called with invalid arguments", [&] { plan(); });
        ddl::barrier(ranks);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_call_that_nobody_waits_for_is_carried_out, Place, every_place) {
    std::array<std::vector<int>, 3> data;  // outlive the communicators
    std::array<ddl::request, 3> kept;
    Place::run(3, [&](auto& ranks) {
        auto& mine = data[static_cast<std::size_t>(ranks.rank())];
        mine = ones(6000);
        ddl::allreduce_async(ranks, mine);
        kept[static_cast<std::size_t>(ranks.rank())] = ddl::allreduce_async(ranks, mine);
    });
    for (const auto& each : kept) BOOST_TEST(each.test(), "a request outlives its communicator");
    for (const auto& each : data) BOOST_TEST(each == std::vector<int>(6000, 9), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(over_levels_too) {
    const auto body = [](auto& ranks) {
        auto data = ones(6000);
        auto more = ones(10);
        const auto first = ddl::allreduce_async(ranks, data);
        const auto second = ddl::broadcast_async(ranks, more, 3);
        ddl::allreduce(ranks, more);
        require_all(ranks, more, 4);
        first.wait();
        require_all(ranks, data, 4);
        second.wait();
    };
    places::levels<ddl::threads, ddl::threads, 2>::run(4, body);
    places::levels<ddl::threads, ddl::recording, 2>::run(4, body);
}

BOOST_AUTO_TEST_CASE(over_levels_an_unchecked_call_too_leaves_the_memory_of_those_under_way_alone) {
    places::levels<ddl::threads, ddl::threads, 2>::run(4, [](auto& ranks) {
        for (int i = 0; i < 20; ++i) {
            std::vector<ddl::half> narrow(5000,
                                          ddl::half{1.0F});  // reduced in a wider type, in the communicator's memory
            std::vector<ddl::half> other(9000, ddl::half{2.0F});
            const auto under_way = ddl::allreduce_async<ddl::tuned, ddl::unchecked>(ranks, narrow);
            ddl::allreduce<ddl::tuned, ddl::unchecked>(ranks, other);
            under_way.wait();
            for (const ddl::half each : narrow) require(each == 4.0F, "the first is wrong");
            for (const ddl::half each : other) require(each == 8.0F, "the second is wrong");
        }
    });
}

BOOST_AUTO_TEST_CASE(a_communicator_moves_when_its_calls_are_over_and_leaves_one_that_says_so) {
    const auto move_in_the_midst = []<class Transport>(Transport& ranks) {
        for (int i = 0; i < 20; ++i) {
            auto first = std::make_unique<Transport>(ranks.split(0, ranks.rank()));
            std::vector<int> data(5000, 1);
            const auto under_way = ddl::allreduce_async(*first, data);
            Transport moved{std::move(*first)};
            constexpr const char* words = "this communicator was moved from; use the one it moved to";
            require_error(ddl::errc::broken, words, [&] { ddl::barrier(*first); });
            require_error(ddl::errc::broken, words, [&] { ddl::barrier_async(*first); });
            require_error(ddl::errc::broken, words, [&] { first->split(0, 0); });
            first.reset();
            under_way.wait();
            ddl::allreduce(moved, data);
            require_all(ranks, data, 4);
        }
    };
    places::threads::run(2, move_in_the_midst);
    places::messages<1>::run(2, move_in_the_midst);
}
