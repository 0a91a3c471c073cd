// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/shape.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <type_traits>

namespace data = boost::unit_test::data;
using ddl::shape;

namespace {

constexpr int firsts[] = {0, 4, 5, 8};

/// Groups are consecutive, none is empty, and each rank is found in its own.
constexpr bool consistent(const shape& ranks) {
    int rank = 0;
    int largest = 0;
    for (int g = 0; g < ranks.groups(); ++g) {
        if (ranks.first(g) != rank || ranks.group_size(g) < 1) return false;
        largest = ranks.group_size(g) > largest ? ranks.group_size(g) : largest;
        for (int i = 0; i < ranks.group_size(g); ++i, ++rank)
            if (ranks.group_of(rank) != g) return false;
    }
    return rank == ranks.size() && largest == ranks.largest_group() && ranks.outer().size() == ranks.groups();
}

}  // namespace

static_assert(std::is_trivially_copyable_v<shape>, "a value, which a kernel may take as an argument");
static_assert(std::is_convertible_v<int, shape>, "a number of ranks is a flat shape");

static_assert(shape{12}.size() == 12 && shape{12}.levels() == 1 && shape{12}.groups() == 1);
static_assert(shape(12).size() == 12 && shape(12).levels() == 1 && shape(12).extent(0) == 12,
              "round or curly, it is flat");

static_assert(shape{4, 3}.size() == 12 && shape{4, 3}.levels() == 2, "3 nodes of 4 ranks");
static_assert(shape{4, 3}.groups() == 3 && shape{4, 3}.group_size(2) == 4 && shape{4, 3}.first(2) == 8);
static_assert(shape{4, 3}.group_of(7) == 1 && shape{4, 3}.group_of(8) == 2);
static_assert(shape{4, 3}.outer().size() == 3 && shape{4, 3}.outer().levels() == 1);
static_assert(shape{2, 3, 5}.size() == 30 && shape{2, 3, 5}.groups() == 15);
static_assert(shape{2, 3, 5}.outer().levels() == 2 && shape{2, 3, 5}.outer().extent(0) == 3,
              "the groups of a level are the ranks of the next");
static_assert(shape{2, 3, 5}.outer().outer().size() == 5);

static_assert(shape::ragged({4}, 11).groups() == 3 && shape::ragged({4}, 11).group_size(2) == 3,
              "the last group stays incomplete");
static_assert(shape::ragged({4}, 12).group_size(2) == 4);
static_assert(shape::ragged({16}, 5).groups() == 1 && shape::ragged({16}, 5).largest_group() == 5,
              "one incomplete group is a group");
static_assert(shape::ragged({2, 3}, 13).groups() == 7 && shape::ragged({2, 3}, 13).outer().groups() == 3 &&
                  shape::ragged({2, 3}, 13).outer().group_size(2) == 1,
              "of each level");

static_assert(shape::listed(firsts, 3).size() == 8 && shape::listed(firsts, 3).groups() == 3);
static_assert(shape::listed(firsts, 3).group_size(1) == 1 && shape::listed(firsts, 3).largest_group() == 4);
static_assert(shape::listed(firsts, 3).group_of(3) == 0 && shape::listed(firsts, 3).group_of(4) == 1 &&
              shape::listed(firsts, 3).group_of(5) == 2);
static_assert(shape::listed(firsts, 3).outer().size() == 3 && shape::listed(firsts, 3).outer().levels() == 1);

static_assert(shape{16}.with_levels(2).extent(0) == 4 && shape{16}.with_levels(2).groups() == 4,
              "a flat shape is cut into about as many groups as each has ranks");
static_assert(shape{27}.with_levels(3).groups() == 9 && shape{27}.with_levels(3).outer().groups() == 3);
static_assert(shape{4, 3}.with_levels(2).extent(0) == 4, "a shape with enough levels stays as it is");
static_assert(shape{4, 3}.with_levels(1).levels() == 2, "and with more than enough");
static_assert(shape::listed(firsts, 3).with_levels(3).groups() == 3, "listed groups are never cut anew");

BOOST_AUTO_TEST_CASE(groups_follow_each_other_and_each_rank_has_one) {
    for (const shape& ranks : {shape{1}, shape{7}, shape{1, 1}, shape{4, 3}, shape{1, 9}, shape{9, 1}, shape{2, 3, 4},
                               shape::listed(firsts, 3), shape::listed(firsts, 1)})
        BOOST_TEST(consistent(ranks), ranks.groups() << " groups of " << ranks.largest_group());
}

BOOST_DATA_TEST_CASE(also_if_the_last_ones_are_incomplete, data::xrange(1, 100), size) {
    for (int extent = 1; extent <= size + 1; ++extent) {
        BOOST_TEST(consistent(shape::ragged({extent}, size)), size << " ranks in groups of " << extent);
        BOOST_TEST(consistent(shape::ragged({extent, 2}, size).outer()), size << " ranks in groups of " << extent);
    }
}

BOOST_DATA_TEST_CASE(a_flat_shape_cut_into_levels_keeps_its_ranks, data::xrange(1, 300), size) {
    for (int levels = 1; levels <= shape::max_levels; ++levels) {
        shape ranks = shape{size}.with_levels(levels);
        BOOST_TEST(ranks.size() == size);
        BOOST_TEST(ranks.levels() == levels);
        for (int level = 0; level < levels; ++level, ranks = ranks.outer())
            BOOST_TEST(consistent(ranks), size << " ranks, level " << level << " of " << levels);
        BOOST_TEST(ranks.size() == 1, "the levels together hold all of " << size << " ranks");
    }
}

BOOST_AUTO_TEST_CASE(many_listed_groups_of_any_size) {
    int table[201] = {};
    for (int g = 0; g < 200; ++g) table[g + 1] = table[g] + 1 + g * 7 % 5;
    BOOST_TEST(consistent(shape::listed(table, 200)));
}
