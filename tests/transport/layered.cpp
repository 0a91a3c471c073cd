// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>

#include <boost/test/unit_test.hpp>

#include <barrier>
#include <chrono>
#include <span>
#include <thread>

#include "../collective/places.hpp"
#include "../collective/require.hpp"

using ddl::layered;
using ddl::recording;
using ddl::threads;

using two = layered<threads, recording>;
using three = layered<threads, recording, recording>;
static_assert(ddl::communicator<two> && ddl::stacked_transport<two> && ddl::stacked_transport<three>);
static_assert(!ddl::memory_transport<two> && !ddl::message_transport<two> && !ddl::clustered_transport<two>);
static_assert(std::is_same_v<decltype(std::declval<three>().wire()), layered<recording, recording>&>,
              "the levels beyond the first");

BOOST_AUTO_TEST_CASE(ranks_are_numbered_node_by_node) {
    places::levels<threads, recording, 3>::run(12, [](auto& all) {
        require(all.size() == 12 && all.node().size() == 3 && all.wire().size() == 4, "the sizes");
        require(all.rank() == 3 * all.wire().rank() + all.node().rank(), "the rank");
    });
}

BOOST_AUTO_TEST_CASE(levels_may_be_any_number) {
    places::three_levels::run(8, [](auto& all) {
        require(
            all.size() == 8 && all.node().size() == 2 && all.wire().node().size() == 2 && all.wire().wire().size() == 2,
            "the sizes");
        require(all.rank() == 4 * all.wire().wire().rank() + 2 * all.wire().node().rank() + all.node().rank(),
                "the rank");
    });
}

BOOST_AUTO_TEST_CASE(its_types_follow_from_the_transports) {
    threads::run(1, [](threads& node) {
        recording::run(1, [&](recording& wire) {
            layered both{node, wire};
            static_assert(std::is_same_v<decltype(both), two>);
            require(&both.node() == &node && &both.wire() == &wire, "it refers to others");
            require(&both.queue() == &node.queue(), "its calls go through the queue of the first level");
        });
    });
}

BOOST_AUTO_TEST_CASE(a_failure_is_told_on_all_levels) {
    std::barrier made{4};  // so that nobody hears of it in `split`
    places::three_levels::run(4, [&made](auto& all) {
        const ddl::call_site here{"test"};
        made.arrive_and_wait();
        all.fail(ddl::errc::system, "it is over");
        require_error(ddl::errc::broken, "it is over", [&] { all.node().begin(here); });
        require_error(ddl::errc::broken, "it is over", [&] { all.wire().node().begin(here); });
        require_error(ddl::errc::broken, "it is over", [&] { all.wire().wire().begin(here); });
    });
}

BOOST_AUTO_TEST_CASE(one_that_ends_has_carried_out_what_was_pending) {
    threads::run(1, [](threads& node) {
        recording::run(1, [&](recording& wire) {
            int value = 3;
            ddl::request pending;
            {
                layered both{node, wire};
                node.queue().push([] { std::this_thread::sleep_for(std::chrono::milliseconds{200}); });
                pending = ddl::allreduce_async(both, std::span{&value, 1});
            }
            require(pending.is_over(), "its destructor waits for its calls, which refer to it");
            pending.wait();
        });
    });
}
