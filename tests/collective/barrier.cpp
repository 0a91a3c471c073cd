// SPDX-License-Identifier: Apache-2.0
#include <ddl/barrier.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <tuple>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {
using every_place = std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>,
                               places::levels<ddl::threads, ddl::recording, 1>>;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nobody_leaves_before_everybody_has_come, Place, every_place) {
    const int times = under_a_sanitizer ? 20 : 50;
    for (const int size : {1, 2, 3, 5, 8}) {
        std::atomic<int> came{0};
        Place::run(size, [&](auto& ranks) {
            for (int i = 1; i <= times; ++i) {
                came.fetch_add(1, std::memory_order_relaxed);
                ddl::barrier(ranks);
                require(came.load(std::memory_order_relaxed) >= i * size, "somebody had not come");
                ddl::barrier<ddl::tuned, ddl::unchecked>(ranks);
            }
        });
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_was_written_before_is_seen_after, Place, every_place) {
    std::vector<int> written(4);
    Place::run(4, [&](auto& ranks) {
        written[static_cast<std::size_t>(ranks.rank())] = ranks.rank() + 1;
        ddl::barrier(ranks);
        require(written == std::vector<int>{1, 2, 3, 4}, "it is not seen");
    });
}

BOOST_AUTO_TEST_CASE(it_comes_without_blocking_too) {
    places::threads::run(3, [](auto& ranks) {
        auto first = ddl::barrier_async(ranks);
        auto second = ddl::barrier_async(ranks);
        second.wait();
        require(first.test(), "they end in order");
    });
}
