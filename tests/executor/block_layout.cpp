// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/block_layout.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/hierarchical.hpp>
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <vector>

namespace data = boost::unit_test::data;
using ddl::block_layout;
using ddl::partition;
using ddl::shape;

namespace {

const std::size_t counts[] = {0, 1, 2, 7, 63, 64, 65, 1000};

template <class Schedule>
block_layout layout_of(const shape& ranks, std::size_t count) {
    return {ddl::reduce_scatter_program<Schedule>(ranks), count};
}

/// What holds of every layout: each element lies in one chunk, which is its rank's, and the places follow each other.
template <class Schedule>
void check(const shape& ranks, std::size_t count) {
    const auto layout = layout_of<Schedule>(ranks, count);
    const partition blocks{count, ranks.size()};
    std::vector<int> seen(count, 0);
    std::size_t end = 0;
    std::size_t longest = 0;
    for (int c = 0; c < layout.chunks(); ++c) {
        BOOST_TEST(layout.place(c) == end, "chunk " << c);
        end += layout.length(c);
        longest = layout.length(c) > longest ? layout.length(c) : longest;
        const int owner = layout.owner(c);
        BOOST_TEST(layout.first(c) >= blocks.first(owner), "chunk " << c);
        BOOST_TEST(layout.first(c) + layout.length(c) <= blocks.first(owner + 1), "chunk " << c);
        for (std::size_t i = 0; i < layout.length(c); ++i) ++seen[layout.first(c) + i];
    }
    BOOST_TEST(end == count);
    BOOST_TEST(layout.longest() == longest);
    BOOST_TEST((seen == std::vector<int>(count, 1)),
               "each element once, " << count << " on " << ranks.size() << " ranks");
}

/// Where the program's order is the vector's, nothing has to be packed.
template <class Schedule>
void check_in_place(int size, std::size_t count) {
    const auto layout = layout_of<Schedule>(size, count);
    for (int c = 0; c < layout.chunks(); ++c) BOOST_TEST(layout.place(c) == layout.first(c), "chunk " << c);
}

constexpr int firsts[] = {0, 3, 4, 9};

}  // namespace

BOOST_DATA_TEST_CASE(every_element_lies_in_one_chunk_of_its_rank, data::xrange(1, 13) * data::make(counts), size,
                     count) {
    check<ddl::ring>(size, count);
    check<ddl::multi_ring<3>>(size, count);
    check<ddl::recursive_halving>(size, count);
    check<ddl::hierarchical<ddl::direct, ddl::ring>>(size, count);
    check<ddl::hierarchical<ddl::direct, ddl::ring, ddl::multi_ring<2>>>(size, count);
}

BOOST_DATA_TEST_CASE(also_in_uneven_groups, data::make(counts), count) {
    check<ddl::hierarchical<ddl::direct, ddl::ring>>(shape::listed(firsts, 3), count);
    check<ddl::hierarchical<ddl::ring, ddl::recursive_halving>>(shape::ragged({4}, 11), count);
}

BOOST_DATA_TEST_CASE(what_owns_in_rank_order_is_not_moved, data::xrange(1, 13) * data::make(counts), size, count) {
    check_in_place<ddl::direct>(size, count);
    check_in_place<ddl::ring>(size, count);
    check_in_place<ddl::multi_ring<2>>(size, count);
    check_in_place<ddl::recursive_halving>(size, count);
}

BOOST_AUTO_TEST_CASE(chunk_r_of_a_ring_is_block_r) {
    const auto layout = layout_of<ddl::ring>(3, 10);
    BOOST_TEST(layout.chunks() == 3);
    BOOST_TEST(layout.longest() == 4u);
    for (int c = 0; c < 3; ++c) {
        BOOST_TEST(layout.owner(c) == c);
        BOOST_TEST((layout.first(c) == partition{10, 3}.first(c)));
        BOOST_TEST((layout.length(c) == partition{10, 3}.length(c)));
    }
}

BOOST_AUTO_TEST_CASE(the_chunks_of_a_rank_cut_its_block_evenly) {
    const auto layout = layout_of<ddl::multi_ring<2>>(2, 10);  // blocks of 5, each in two
    BOOST_TEST(layout.length(0) == 3u);
    BOOST_TEST(layout.length(1) == 2u);
    BOOST_TEST(layout.first(1) == 3u);
    BOOST_TEST(layout.owner(1) == 0);
    BOOST_TEST(layout.owner(2) == 1);
}

BOOST_AUTO_TEST_CASE(a_hierarchy_is_packed_in_an_order_of_its_own) {
    const auto layout = layout_of<ddl::hierarchical<ddl::direct, ddl::ring>>(shape{2, 2}, 8);
    bool moved = false;
    for (int c = 0; c < layout.chunks(); ++c) moved = moved || layout.place(c) != layout.first(c);
    BOOST_TEST(moved,
               "chunks that rank 1 owns lie between those of rank 0 and rank 2 in the vector, not in the program");
}
