// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/hierarchical.hpp>
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/tree.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <type_traits>
#include <vector>

namespace data = boost::unit_test::data;
using ddl::direct;
using ddl::hierarchical;
using ddl::multi_ring;
using ddl::recursive_doubling;
using ddl::recursive_halving;
using ddl::ring;
using ddl::shape;
using ddl::tree;

namespace {

constexpr int firsts[] = {0, 3, 4, 9, 11};  // groups of 3, 1, 5, 2

template <class Schedule>
bool proves_all(const shape& ranks) {
    return ddl::proves_allreduce<Schedule>(ranks) && ddl::proves_reduce_scatter<Schedule>(ranks) &&
           ddl::proves_all_gather<Schedule>(ranks);
}

/// What a rank sends in all rounds, inside its group and out of it, in chunks.
struct traffic {
    int inside = 0;
    int outside = 0;
};
template <ddl::program Program>
traffic sent(const Program& what, const shape& ranks, int rank) {
    traffic result;
    for (int k = 0; k < what.rounds(); ++k)
        for (int i = 0; i < what.width(rank, k); ++i)
            if (const auto t = what.at(rank, k, i); t.what == ddl::action::send)
                (ranks.group_of(t.peer) == ranks.group_of(rank) ? result.inside : result.outside) += t.count;
    return result;
}

}  // namespace

static_assert(ddl::proves_allreduce<hierarchical<direct, ring>>(1),
              "one rank has nothing to do, and that is an allreduce");
static_assert(ddl::proves_allreduce<hierarchical<direct, ring>>(shape{2, 3}), "3 nodes of 2 ranks");
static_assert(ddl::proves_allreduce<hierarchical<direct, ring>>(5), "a flat number of ranks is cut into groups");
static_assert(ddl::proves_allreduce<hierarchical<ring, recursive_halving>>(shape::ragged({3}, 5)),
              "groups may be uneven");
static_assert(ddl::proves_allreduce<hierarchical<direct, tree>>(shape{2, 3}),
              "the outermost level need not have halves");
static_assert(ddl::proves_allreduce<hierarchical<direct, direct, ring>>(shape{2, 2, 2}), "any depth");
static_assert(ddl::proves_reduce_scatter<hierarchical<direct, ring>>(shape{2, 3}) &&
              ddl::proves_all_gather<hierarchical<direct, ring>>(shape{2, 3}));
static_assert(ddl::has_halves<hierarchical<direct, ring>> && !ddl::has_halves<hierarchical<direct, tree>>,
              "it has halves if all its levels do");
static_assert(std::is_same_v<hierarchical<direct, ring>::outer, ring>, "one level is that level's schedule");
static_assert(std::is_same_v<hierarchical<direct, ring, tree>::outer, hierarchical<ring, tree>>);
static_assert(hierarchical<direct, ring, tree>::levels == 3);
static_assert(ddl::keeps_rank_order<hierarchical<direct, recursive_doubling>>, "all its levels keep rank order");
static_assert(!ddl::keeps_rank_order<hierarchical<direct, ring>>, "one that rotates is enough to rotate");
static_assert(!ddl::keeps_rank_order<hierarchical<ring, direct>>);
static_assert(!ddl::keeps_rank_order<hierarchical<direct, direct, ring>>, "which rotates among many ranks only");
static_assert(!ddl::keeps_rank_order<hierarchical<direct, ring, direct>>);

BOOST_DATA_TEST_CASE(a_flat_number_of_ranks, data::xrange(1, 65), size) {
    BOOST_TEST((proves_all<hierarchical<direct, ring>>(size)));
    BOOST_TEST((proves_all<hierarchical<ring, recursive_halving>>(size)));
    BOOST_TEST((proves_all<hierarchical<recursive_halving, direct>>(size)));
    BOOST_TEST((proves_all<hierarchical<multi_ring<2>, multi_ring<3>>>(size)));
    BOOST_TEST((proves_all<hierarchical<direct, ring, recursive_halving>>(size)));
    BOOST_TEST((ddl::proves_allreduce<hierarchical<direct, recursive_doubling>>(size)));
    BOOST_TEST((ddl::proves_allreduce<hierarchical<ring, direct, tree>>(size)));
}

BOOST_DATA_TEST_CASE(groups_of_which_the_last_is_incomplete, data::xrange(1, 33), size) {
    for (int extent = 1; extent <= size; ++extent) {
        const shape ranks = shape::ragged({extent}, size);
        BOOST_TEST((proves_all<hierarchical<direct, ring>>(ranks)), "in groups of " << extent);
        BOOST_TEST((proves_all<hierarchical<ring, recursive_halving>>(ranks)), "in groups of " << extent);
        BOOST_TEST((proves_all<hierarchical<recursive_halving, multi_ring<2>>>(ranks)), "in groups of " << extent);
        BOOST_TEST((ddl::proves_allreduce<hierarchical<ring, tree>>(ranks)), "in groups of " << extent);
        BOOST_TEST((proves_all<hierarchical<direct, ring, direct>>(shape::ragged({extent, 2}, size))), "of " << extent);
    }
}

BOOST_AUTO_TEST_CASE(every_division_of_seven_ranks_into_groups) {
    for (unsigned cuts = 0; cuts < 64; ++cuts) {
        std::vector<int> table = {0};
        for (int rank = 1; rank < 7; ++rank)
            if ((cuts >> (rank - 1) & 1) != 0) table.push_back(rank);
        table.push_back(7);
        const shape ranks = shape::listed(table.data(), static_cast<int>(table.size()) - 1);
        BOOST_TEST((proves_all<hierarchical<direct, ring>>(ranks)), "cuts " << cuts);
        BOOST_TEST((proves_all<hierarchical<ring, recursive_halving>>(ranks)), "cuts " << cuts);
        BOOST_TEST((proves_all<hierarchical<recursive_halving, direct, ring>>(ranks)), "cuts " << cuts);
        BOOST_TEST((ddl::proves_rank_order<hierarchical<direct, recursive_doubling>>(ranks)), "cuts " << cuts);
    }
}

BOOST_DATA_TEST_CASE(rank_order_is_kept_if_all_levels_keep_it, data::xrange(1, 65), size) {
    BOOST_TEST((ddl::proves_rank_order<hierarchical<direct, direct>>(size)));
    BOOST_TEST((ddl::proves_rank_order<hierarchical<direct, recursive_doubling>>(size)));
    BOOST_TEST((ddl::proves_rank_order<hierarchical<direct, tree>>(size)));
    BOOST_TEST((ddl::proves_rank_order<hierarchical<direct, direct, tree>>(size)));
    BOOST_TEST((ddl::proves_rank_order<hierarchical<direct, direct>>(shape::ragged({5}, size))));
}

BOOST_AUTO_TEST_CASE(the_steps_are_those_of_all_levels) {
    const shape ranks{4, 3};
    BOOST_TEST((hierarchical<ring, recursive_halving>::allreduce(ranks).rounds() ==
                ring::rounds(4) + recursive_halving::rounds(3)));
    BOOST_TEST((hierarchical<direct, tree>::allreduce(ranks).rounds() == direct::rounds(4) + tree::rounds(3)));
    const shape uneven = shape::listed(firsts, 4);
    BOOST_TEST((hierarchical<ring, ring>::allreduce(uneven).rounds() == ring::rounds(5) + ring::rounds(4)),
               "the largest group sets the pace");
}

BOOST_DATA_TEST_CASE(the_bytes_are_the_bounds_of_both_levels, data::xrange(1, 10), members) {
    for (int groups = 1; groups <= 9; ++groups) {
        const shape ranks{members, groups};
        const auto program = hierarchical<ring, recursive_halving>::allreduce(ranks);
        for (int rank = 0; rank < ranks.size(); ++rank) {
            const traffic found = sent(program, ranks, rank);
            // 2n(q-1)/q inside, 2n(m-1)/(mq) outside; n is chunks()
            BOOST_TEST(found.inside * members == 2 * program.chunks() * (members - 1), groups << " groups");
            BOOST_TEST(found.outside * groups * members == 2 * program.chunks() * (groups - 1), groups << " groups");
        }
    }
}

BOOST_DATA_TEST_CASE(every_rank_of_a_group_carries_a_share_outward, data::xrange(2, 33), size) {
    for (int extent = 1; extent < size; ++extent) {
        const shape ranks = shape::ragged({extent}, size);
        const auto program = hierarchical<direct, ring>::allreduce(ranks);
        for (int rank = 0; rank < size; ++rank)
            BOOST_TEST(sent(program, ranks, rank).outside > 0, "rank " << rank << " in groups of " << extent);
    }
}

BOOST_DATA_TEST_CASE(across_is_the_part_that_leaves_the_groups, data::xrange(5, 33), size) {
    const shape ranks = shape::ragged({4}, size);
    const auto across = hierarchical<direct, ring>::across(ranks);
    const auto whole = hierarchical<direct, ring>::allreduce(ranks);
    for (int rank = 0; rank < size; ++rank) {
        BOOST_TEST(sent(across, ranks, rank).inside == 0);
        BOOST_TEST(sent(across, ranks, rank).outside == sent(whole, ranks, rank).outside);
    }
}

BOOST_AUTO_TEST_CASE(an_outer_level_that_rotates_does_so_from_three_groups_on) {
    BOOST_TEST((ddl::proves_rank_order<hierarchical<direct, direct, ring>>(7)));
    BOOST_TEST((!ddl::proves_rank_order<hierarchical<direct, direct, ring>>(27)));
}

BOOST_AUTO_TEST_CASE(each_chunk_has_one_owner_of_its_group) {
    const shape ranks = shape::listed(firsts, 4);
    const auto halves = hierarchical<direct, ring>::reduce_scatter(ranks);
    for (const int owner : ddl::owners(halves)) BOOST_TEST((0 <= owner && owner < ranks.size()));
    const auto back = hierarchical<direct, ring>::all_gather(ranks);
    BOOST_TEST(ddl::owners(back) == ddl::owners(halves), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_hierarchy_may_be_the_outermost_level_of_another) {
    BOOST_TEST((proves_all<hierarchical<direct, hierarchical<ring, recursive_halving>>>(shape{3, 2, 2})));
    BOOST_TEST((proves_all<hierarchical<direct, hierarchical<ring, recursive_halving>>>(shape::ragged({3, 2}, 17))));
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
BOOST_AUTO_TEST_CASE(it_is_an_allreduce_of_thousands) {
    BOOST_TEST((ddl::proves_allreduce<hierarchical<direct, ring>>(shape{8, 32})));
    BOOST_TEST((ddl::proves_allreduce<hierarchical<direct, ring, recursive_halving>>(shape{8, 8, 8})));
    BOOST_TEST((ddl::proves_allreduce<hierarchical<ring, recursive_doubling>>(shape::ragged({12}, 1000))));
#ifndef SANITIZED
    BOOST_TEST((ddl::proves_allreduce<hierarchical<direct, ring, recursive_halving>>(shape{16, 16, 16})));
#endif
}
