// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/tree.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <vector>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::operand_order;
using ddl::tree;

namespace {

/// Roots worth a proof: all of a few ranks, of many the ends and the middle.
std::vector<int> roots(int size) {
    if (size > 16) return {0, 1, size / 2, size - 1};
    std::vector<int> all;
    for (int root = 0; root < size; ++root) all.push_back(root);
    return all;
}

/// Chunks that `rank` sends and receives.
template <ddl::program Program>
int moved(const Program& what, int rank) {
    int result = 0;
    for (int k = 0; k < what.rounds(); ++k)
        for (int i = 0; i < what.width(rank, k); ++i) result += what.at(rank, k, i).count;
    return result;
}

}  // namespace

static_assert(ddl::proves_allreduce<tree>(1), "one rank has nothing to do, and that is an allreduce");
static_assert(ddl::proves_allreduce<tree>(2) && ddl::proves_allreduce<tree>(7) && ddl::proves_allreduce<tree>(8));
static_assert(ddl::proves_broadcast<tree>(6, 4) && ddl::proves_reduce<tree>(6, 4));
static_assert(ddl::proves_scatter<tree>(6, 4) && ddl::proves_gather<tree>(6, 4));
static_assert(ddl::keeps_rank_order<tree>);
static_assert(!ddl::has_halves<tree>, "it has no reduce-scatter");
static_assert(!ddl::exchanges<tree>, "and no all-to-all");

BOOST_DATA_TEST_CASE(it_is_every_collective_that_it_offers, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_allreduce<tree>(size));
    for (const int root : roots(size)) {
        BOOST_TEST(ddl::proves_broadcast<tree>(size, root), "from " << root);
        BOOST_TEST(ddl::proves_reduce<tree>(size, root), "to " << root);
        BOOST_TEST(ddl::proves_scatter<tree>(size, root), "from " << root);
        BOOST_TEST(ddl::proves_gather<tree>(size, root), "to " << root);
    }
}

BOOST_DATA_TEST_CASE(the_allreduce_keeps_rank_order, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_rank_order<tree>(size));
    BOOST_TEST(bool(ddl::prove_reduce<operand_order::ranks>(tree::reduce(size, 0), 0)));
}

BOOST_DATA_TEST_CASE(a_reduction_to_another_root_than_0_may_rotate_the_operands, data::xrange(3, 33), size) {
    const auto found = ddl::prove_reduce<operand_order::ranks>(tree::reduce(size, size - 1), size - 1);
    BOOST_TEST((found.what == ddl::flaw::disordered),
               "the last rank begins with the first one, its neighbour in the tree");
    BOOST_TEST(found.round == 0);
}

BOOST_DATA_TEST_CASE(ceil_log2_p_steps_each_way, data::xrange(1, 300), size) {
    const int steps = ddl::ceil_log2(size);
    BOOST_TEST(tree::rounds(size) == 2 * steps);
    BOOST_TEST(tree::broadcast(size, size - 1).rounds() == steps);
    BOOST_TEST(tree::reduce(size, size - 1).rounds() == steps);
    BOOST_TEST(tree::scatter(size, size - 1).rounds() == steps);
    BOOST_TEST(tree::gather(size, size - 1).rounds() == steps);
}

BOOST_DATA_TEST_CASE(what_is_known_spreads_to_twice_as_many_ranks_in_every_round, data::xrange(1, 65), size) {
    const auto spreading = tree::broadcast(size, size / 3);
    int knowing = 1;
    for (int k = 0; k < spreading.rounds(); ++k) {
        int receivers = 0;
        for (int rank = 0; rank < size; ++rank)
            for (int i = 0; i < spreading.width(rank, k); ++i)
                receivers += spreading.at(rank, k, i).what == action::receive;
        BOOST_TEST(receivers <= knowing, "round " << k);
        knowing += receivers;
        BOOST_TEST(knowing >= size >> (spreading.rounds() - 1 - k), "round " << k);
    }
    BOOST_TEST(knowing == size);
}

BOOST_DATA_TEST_CASE(a_rank_has_at_most_one_message_a_round, data::xrange(1, 65), size) {
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < tree::rounds(size); ++k) BOOST_TEST(tree::round(rank, size, k).size() <= 1);
}

BOOST_DATA_TEST_CASE(a_scatter_or_gather_moves_p_minus_1_blocks_of_p_through_the_root, data::xrange(1, 65), size) {
    for (const int root : roots(size)) {
        BOOST_TEST(tree::scatter(size, root).chunks() == size);
        BOOST_TEST(moved(tree::scatter(size, root), root) == size - 1, "root " << root);
        BOOST_TEST(moved(tree::gather(size, root), root) == size - 1, "root " << root);
    }
}

BOOST_AUTO_TEST_CASE(an_edge_of_a_gather_carries_the_blocks_of_a_whole_subtree) {
    const auto gather = tree::gather(8, 0);
    BOOST_TEST((gather.at(4, 2, 0) == ddl::transfer{action::send, 0, 4, 4}));
    const auto around = tree::gather(8, 6);  // rank 2 is the fourth after the root: it has 2, 3, 4, 5
    BOOST_TEST((around.at(2, 2, 0) == ddl::transfer{action::send, 6, 2, 4}));
    BOOST_TEST(tree::gather(8, 3).width(7, 2) == 2, "ranks 7, 0, 1, 2 are two neighbourhoods of blocks");
}

BOOST_AUTO_TEST_CASE(it_carries_thousands) {
    for (const int size : {127, 128, 129, 1000, 4096}) {
        BOOST_TEST(ddl::proves_allreduce<tree>(size), size << " ranks");
        BOOST_TEST(ddl::proves_rank_order<tree>(size), size << " ranks");
        for (const int root : {0, size / 2, size - 1}) {
            BOOST_TEST(ddl::proves_broadcast<tree>(size, root), size << " ranks");
            BOOST_TEST(ddl::proves_reduce<tree>(size, root), size << " ranks");
        }
    }
    for (const int root : {0, 77, 1023}) {
        BOOST_TEST(ddl::proves_scatter<tree>(1024, root), "from " << root);
        BOOST_TEST(ddl::proves_gather<tree>(1024, root), "to " << root);
    }
}
