// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/hierarchical.hpp>
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/rooted.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <vector>

namespace data = boost::unit_test::data;
using ddl::direct;
using ddl::hierarchical;
using ddl::multi_ring;
using ddl::recursive_doubling;
using ddl::recursive_halving;
using ddl::ring;
using ddl::tree;

namespace {

struct textbook_of_one_chunk {
    static constexpr int chunks(int) { return 1; }
    static constexpr int rounds(int) { return 0; }
    static constexpr ddl::transfer_list<1> round(int, int, int) { return {}; }
};

/// Roots worth a proof: all of a few ranks, of many the ends and the middle.
std::vector<int> roots(int size) {
    if (size > 16) return {0, size / 2, size - 1};
    std::vector<int> all;
    for (int root = 0; root < size; ++root) all.push_back(root);
    return all;
}

template <class Schedule>
void check_joined(int size) {
    for (const int root : roots(size)) {
        BOOST_TEST(ddl::proves_broadcast<Schedule>(size, root), ddl::schedule_name<Schedule>() << " from " << root);
        BOOST_TEST(ddl::proves_reduce<Schedule>(size, root), ddl::schedule_name<Schedule>() << " to " << root);
    }
}

template <ddl::program Program>
int sent(const Program& what, int rank) {
    int chunks = 0;
    for (int k = 0; k < what.rounds(); ++k)
        for (int i = 0; i < what.width(rank, k); ++i)
            if (const auto t = what.at(rank, k, i); t.what == ddl::action::send) chunks += t.count;
    return chunks;
}

}  // namespace

//                                          direct             tree             ring             recursive_doubling
static_assert(ddl::broadcasts<direct> && ddl::broadcasts<tree> && ddl::broadcasts<ring> &&
              !ddl::broadcasts<recursive_doubling>);
static_assert(ddl::reduces<direct> && ddl::reduces<tree> && ddl::reduces<ring> && !ddl::reduces<recursive_doubling>);
static_assert(ddl::gathers<direct> && ddl::gathers<tree> && !ddl::gathers<ring> && !ddl::gathers<recursive_doubling>);
static_assert(ddl::scatters<direct> && ddl::scatters<tree> && !ddl::scatters<ring> &&
              !ddl::scatters<recursive_doubling>);
static_assert(ddl::exchanges<direct> && !ddl::exchanges<tree> && ddl::exchanges<ring> &&
              !ddl::exchanges<recursive_doubling>);

static_assert(ddl::joins_trees<ring> && ddl::joins_trees<recursive_halving> && ddl::joins_trees<multi_ring<2>>,
              "rank r owns block r in between, as in a scatter");
static_assert(!ddl::joins_trees<hierarchical<direct, ring>>, "a hierarchy owns in an order of its own");
static_assert(!ddl::broadcasts<hierarchical<direct, ring>> && !ddl::reduces<hierarchical<direct, ring>>);
static_assert(!ddl::joins_trees<textbook_of_one_chunk>, "nor is one chunk a block for each of two");

BOOST_DATA_TEST_CASE(halves_become_a_broadcast_and_a_reduction, data::xrange(1, 65), size) {
    check_joined<ring>(size);
    check_joined<recursive_halving>(size);
    check_joined<multi_ring<2>>(size);
    check_joined<multi_ring<3>>(size);
}

BOOST_AUTO_TEST_CASE(a_schedules_own_program_comes_first) {
    BOOST_TEST(ddl::broadcast_program<direct>(9, 2).rounds() == 1);
    BOOST_TEST(ddl::reduce_program<direct>(9, 2).rounds() == 1);
    BOOST_TEST(ddl::broadcast_program<tree>(9, 2).rounds() == 4);
    BOOST_TEST(ddl::broadcast_program<tree>(9, 2).chunks() == 1);
}

BOOST_DATA_TEST_CASE(the_tree_and_the_half_follow_each_other, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::broadcast_program<ring>(size, 0).rounds() == ddl::ceil_log2(size) + size - 1);
    BOOST_TEST(ddl::reduce_program<recursive_halving>(size, 0).rounds() == 2 * ddl::ceil_log2(size));
}

BOOST_DATA_TEST_CASE(the_root_of_a_long_broadcast_sends_two_times_p_minus_1_chunks_of_p, data::xrange(1, 65), size) {
    for (const int root : roots(size)) {
        BOOST_TEST(sent(ddl::broadcast_program<ring>(size, root), root) == 2 * (size - 1));
        BOOST_TEST(sent(ddl::broadcast_program<multi_ring<2>>(size, root), root) == 2 * 2 * (size - 1));
        for (int rank = 0; rank < size; ++rank)
            BOOST_TEST(sent(ddl::broadcast_program<recursive_halving>(size, root), rank) <= 2 * (size - 1),
                       "rank " << rank);
    }
}

BOOST_AUTO_TEST_CASE(they_hold_for_hundreds) {
    for (const int size : {127, 128, 129, 500}) {
        check_joined<ring>(size);
        check_joined<recursive_halving>(size);
    }
}
