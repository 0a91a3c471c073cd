// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>

#include <boost/test/unit_test.hpp>

#include <tuple>

#include "oracle.hpp"
#include "places.hpp"

namespace {
using every_place = std::tuple<places::threads, places::messages<1>, places::messages<2>>;

template <class Ranks>
int sum_of(Ranks& ranks, int value, std::size_t count = 3) {
    std::vector<int> data(count, value);
    ddl::allreduce(ranks, data);
    return data.back();
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(ranks_of_a_color_are_a_communicator, Place, every_place) {
    for (const int size : {1, 2, 5, 8})
        Place::run(size, [](auto& ranks) {
            auto group = ranks.split(ranks.rank() % 2, 0);
            require(group.rank() == ranks.rank() / 2, "equal keys keep the order of ranks");
            require(group.size() == (ranks.size() + 1 - ranks.rank() % 2) / 2, "its size");
            int expected = 0;
            for (int peer = ranks.rank() % 2; peer < ranks.size(); peer += 2) expected += peer;
            for (const std::size_t count : {std::size_t{3}, std::size_t{20'000}})
                require(sum_of(group, ranks.rank(), count) == expected, "the sum of the group");
        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(keys_order_the_ranks, Place, every_place) {
    Place::run(4, [](auto& ranks) {
        auto reversed = ranks.split(7, -ranks.rank());
        require(reversed.rank() == 3 - ranks.rank() && reversed.size() == 4, "the order of negative keys");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_of_a_group_and_of_all_may_alternate, Place, every_place) {
    Place::run(4, [](auto& ranks) {
        auto pair = ranks.split(ranks.rank() / 2, ranks.rank());
        for (int i = 0; i < 20; ++i) {
            require(sum_of(pair, 1) == 2, "in pairs");
            require(sum_of(ranks, 1) == 4, "in all");
        }
        auto alone = pair.split(pair.rank(), 0);
        require(alone.size() == 1 && sum_of(alone, 5) == 5, "a part of a part");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_group_outlives_the_communicator_that_it_came_from, Place, every_place) {
    Place::run(4, [](auto& ranks) {
        auto group = [&] {
            auto first = ranks.split(0, ranks.rank());
            return first.split(first.rank() % 2, 0);
        }();
        require(sum_of(group, 1) == 2, "it went with it");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_failure_stays_in_its_group, Place, every_place) {
    Place::run(4, [](auto& ranks) {
        auto pair = ranks.split(ranks.rank() / 2, ranks.rank());
        ddl::barrier(ranks);  // so that nobody hears of it in `split`
        if (ranks.rank() == 1) pair.fail(ddl::errc::system, "rank 1 says so");
        ddl::barrier(ranks);
        if (ranks.rank() < 2) {
            if (ranks.rank() == 0)
                require_error(ddl::errc::system, "a peer gave up [rank 1 says so]", [&] { sum_of(pair, 1); });
            require_error(ddl::errc::broken, "rank 1 says so", [&] { sum_of(pair, 1); });
        } else {
            require(sum_of(pair, 1) == 2, "the other pair is whole");
        }
        require(sum_of(ranks, 1) == 4, "and so are all together");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_negative_color_is_refused, Place, every_place) {
    Place::run(2, [](auto& ranks) {
        require_error(ddl::errc::invalid_argument, "color is -1; pass 0 or more", [&] { ranks.split(-1, 0); });
        require(sum_of(ranks, 1) == 2, "as good as before");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_split_comes_after_the_calls_under_way, Place, every_place) {
    Place::run(3, [](auto& ranks) {
        std::vector<int> data(5000, 1);
        const auto under_way = ddl::allreduce_async(ranks, data);
        auto group = ranks.split(0, 0);
        require(under_way.test(), "it overtook the call");
        require(sum_of(group, 1) == 3, "the group");
        under_way.wait();
    });
}
