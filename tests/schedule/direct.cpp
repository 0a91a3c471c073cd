// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/proof.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <vector>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::direct;
using ddl::operand_order;

namespace {

/// Roots worth a proof: all of a few ranks, of many the ends and the middle.
std::vector<int> roots(int size) {
    if (size > 16) return {0, 1, size / 2, size - 1};
    std::vector<int> all;
    for (int root = 0; root < size; ++root) all.push_back(root);
    return all;
}

}  // namespace

static_assert(ddl::proves_allreduce<direct>(1), "one rank has nothing to do, and that is an allreduce");
static_assert(ddl::proves_allreduce<direct>(2) && ddl::proves_allreduce<direct>(5));
static_assert(ddl::proves_reduce_scatter<direct>(5) && ddl::proves_all_gather<direct>(5));
static_assert(ddl::proves_broadcast<direct>(4, 2) && ddl::proves_reduce<direct>(4, 2));
static_assert(ddl::proves_scatter<direct>(4, 2) && ddl::proves_gather<direct>(4, 2));
static_assert(ddl::proves_all_to_all<direct>(4));
static_assert(ddl::keeps_rank_order<direct>, "what it combines is always adjacent");
static_assert(direct::rounds(1) == 0 && direct::rounds(2) == 2 && direct::rounds(1000) == 2);

BOOST_DATA_TEST_CASE(it_is_every_collective_that_it_offers, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_allreduce<direct>(size));
    BOOST_TEST(ddl::proves_reduce_scatter<direct>(size));
    BOOST_TEST(ddl::proves_all_gather<direct>(size));
    BOOST_TEST(ddl::proves_all_to_all<direct>(size));
    for (const int root : roots(size)) {
        BOOST_TEST(ddl::proves_broadcast<direct>(size, root), "from " << root);
        BOOST_TEST(ddl::proves_reduce<direct>(size, root), "to " << root);
        BOOST_TEST(ddl::proves_scatter<direct>(size, root), "from " << root);
        BOOST_TEST(ddl::proves_gather<direct>(size, root), "to " << root);
    }
}

BOOST_DATA_TEST_CASE(it_keeps_rank_order_whatever_it_reduces_and_wherever_to, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_rank_order<direct>(size));
    BOOST_TEST(bool(ddl::prove_reduce_scatter<operand_order::ranks>(ddl::reduce_scatter_program<direct>(size))));
    for (const int root : roots(size))
        BOOST_TEST(bool(ddl::prove_reduce<operand_order::ranks>(direct::reduce(size, root), root)), "to " << root);
}

BOOST_DATA_TEST_CASE(operands_arrive_from_below_down_to_0_then_from_above_up, data::xrange(2, 33), size) {
    for (int rank = 0; rank < size; ++rank) {
        std::vector<int> expected;
        for (int peer = rank - 1; peer >= 0; --peer) expected.push_back(peer);
        for (int peer = rank + 1; peer < size; ++peer) expected.push_back(peer);
        std::vector<int> seen;
        const auto transfers = direct::round(rank, size, 0);
        for (int i = 0; i < transfers.size(); ++i)
            if (transfers[i].what == action::receive_reduce) seen.push_back(transfers[i].peer);
        BOOST_TEST(seen == expected, "rank " << rank);
    }
}

BOOST_DATA_TEST_CASE(a_rank_sends_two_times_p_minus_1_messages_of_one_chunk_of_p, data::xrange(1, 65), size) {
    BOOST_TEST(direct::chunks(size) == size);
    for (int rank = 0; rank < size; ++rank) {
        int messages = 0;
        for (int k = 0; k < direct::rounds(size); ++k) {
            const auto transfers = direct::round(rank, size, k);
            for (int i = 0; i < transfers.size(); ++i) {
                messages += transfers[i].what == action::send;
                BOOST_TEST(transfers[i].count == 1);
            }
        }
        BOOST_TEST(messages == 2 * (size - 1), "rank " << rank);
    }
}

BOOST_DATA_TEST_CASE(after_the_first_half_rank_r_owns_chunk_r, data::xrange(2, 33), size) {
    for (int rank = 0; rank < size; ++rank) {
        const auto scatter = direct::round(rank, size, 0);
        const auto gather = direct::round(rank, size, 1);
        for (int i = 0; i < scatter.size(); ++i) {
            if (scatter[i].what == action::receive_reduce) BOOST_TEST(scatter[i].chunk == rank);
            if (gather[i].what == action::send) BOOST_TEST(gather[i].chunk == rank);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_rooted_is_one_round_in_which_only_the_root_has_many_peers) {
    for (const auto& star :
         {direct::broadcast(9, 4), direct::reduce(9, 4), direct::scatter(9, 4), direct::gather(9, 4)}) {
        BOOST_TEST(star.rounds() == 1);
        for (int rank = 0; rank < 9; ++rank) {
            BOOST_TEST(star.width(rank, 0) == (rank == 4 ? 8 : 1));
            if (rank != 4) BOOST_TEST(star.at(rank, 0, 0).peer == 4);
        }
    }
    BOOST_TEST(direct::broadcast(1, 0).rounds() == 0);
    BOOST_TEST(direct::broadcast(9, 4).chunks() == 1, "all get the same");
    BOOST_TEST(direct::scatter(9, 4).chunks() == 9, "each gets its own");
}

BOOST_DATA_TEST_CASE(an_all_to_all_presses_upon_no_rank_first, data::xrange(2, 33), size) {
    const auto exchange = direct::all_to_all(size);
    BOOST_TEST(exchange.rounds() == 1);
    std::vector<int> pressed(static_cast<std::size_t>(size), 0);
    for (int rank = 0; rank < size; ++rank) {
        BOOST_TEST(exchange.width(rank, 0) == 2 * (size - 1));
        ++pressed[static_cast<std::size_t>(exchange.at(rank, 0, 0).peer)];
    }
    BOOST_TEST(pressed == std::vector<int>(static_cast<std::size_t>(size), 1), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(it_is_an_allreduce_of_a_thousand) {
    for (const int size : {127, 128, 129, 1024}) BOOST_TEST(ddl::proves_allreduce<direct>(size), size << " ranks");
}
