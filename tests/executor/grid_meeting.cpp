// SPDX-License-Identifier: Apache-2.0
// What the bodies of grids owe to how their blocks meet.
#include <ddl/executor/grid_one_shot.hpp>
#include <ddl/executor/grid_two_shot.hpp>
#include <ddl/op/sum.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <tuple>

#include "host_grid.hpp"

namespace {
using bodies = std::tuple<ddl::grid_one_shot<ddl::sum, int>, ddl::grid_two_shot<ddl::sum, int>>;
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_follow_each_other_with_no_order_but_their_own, Body, bodies) {
    constexpr std::size_t count = 9;
    for (int ranks = 2; ranks < 5; ++ranks) {
        host_grid grid{ranks};
        auto in = values_of_ranks<int>(ranks, count, [](int, std::size_t) { return 0; });
        auto out = in;
        const Body body{grid.places(in, out), count, {}};
        std::atomic<int> wrong = 0;
        const auto missing = grid.run(
            [&](ddl::host_block& space) {  // a rank may be a call ahead of its peers
                const auto rank = static_cast<std::size_t>(space.rank());
                for (int turn = 0; turn < 200; ++turn) {
                    if (space.thread() == 0)
                        for (int& value : in[rank]) value = turn + space.rank();
                    space.barrier();  // a launch of its own would be one
                    body(space);
                    for (const int value : out[rank]) wrong += value != ranks * turn + ranks * (ranks - 1) / 2;
                }
            },
            1);
        BOOST_TEST(missing.empty());
        BOOST_TEST(wrong == 0);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rank_that_does_not_come_is_named, Body, bodies) {
    host_grid grid{3};
    auto in = values_of_ranks<int>(3, 10, [](int, std::size_t) { return 1; });
    const auto missing = grid.run(Body{grid.places(in, in), 10, {}}, 2, ddl::timeout{2}, 1);
    BOOST_TEST(missing == (std::vector<int>{1, 1, 1, 1}), boost::test_tools::per_element());
}

namespace {
/// `body` on one rank alone.
auto on(int rank, auto body) {
    return [=](ddl::host_block& space) {
        if (space.rank() == rank) body(space);
    };
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(who_comes_late_leaves_the_buffers_of_those_alone_who_have_given_up, Body, bodies) {
    host_grid grid{3};
    auto in = values_of_ranks<int>(3, 100, [](int rank, std::size_t) { return rank; });
    auto out = in;
    const Body body{grid.places(in, out), 100, {}};
    BOOST_TEST(!grid.run(body, 2, ddl::timeout{0.5}, 1).empty());
    const auto before = out;
    grid.run(on(1, body), 2, ddl::timeout{0.2});
    for (const std::size_t rank : {0U, 2U}) BOOST_TEST(out[rank] == before[rank], boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(who_has_given_up_is_not_met_in_a_later_call) {
    host_grid grid{3};
    auto in = values_of_ranks<int>(3, 100, [](int rank, std::size_t) { return rank; });
    auto out = in;
    const ddl::grid_two_shot<ddl::sum, int> body{grid.places(in, out), 100, {}};
    BOOST_TEST(!grid.run(body, 2, ddl::timeout{0.5}, 1).empty());
    BOOST_TEST(!grid.run(body, 2, ddl::timeout{0.5}).empty());  // the late rank's first call, the others' second
    BOOST_TEST(out == in);
}

BOOST_AUTO_TEST_CASE(who_gives_up_behind_its_work_leaves_its_peers_to_theirs_and_begins_nothing_new) {
    host_grid grid{2};
    auto in = values_of_ranks<int>(2, 10, [](int, std::size_t) { return 1; });
    auto out = in;
    const ddl::grid_two_shot<ddl::sum, int> body{grid.places(in, out), 10, {}};
    *grid.window(0).arrival(0, 1) = 1;  // rank 1 has come, and is at work for long
    BOOST_TEST(!grid.run(on(0, body), 1, ddl::timeout{0.2}).empty());
    const auto half = out;
    BOOST_TEST(half != in);
    in[0][0] = in[1][0] = 7;
    grid.run(on(0, body), 1, ddl::timeout{0.2});
    BOOST_TEST(out == half);
    BOOST_TEST(*grid.window(1).arrival(0, 0) == 2U);  // so rank 1 may end its call
}
