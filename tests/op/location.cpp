// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/half.hpp>
#include <ddl/op/location.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

using ddl::combines;
using ddl::located;
using ddl::maximum_location;
using ddl::minimum_location;

static_assert(ddl::commutes<minimum_location> && ddl::commutes<maximum_location>);
static_assert(ddl::op_name<minimum_location>() == std::string_view{"minimum_location"});
static_assert(ddl::op_name<maximum_location>() == std::string_view{"maximum_location"});
static_assert(combines<minimum_location, located<float>> && combines<maximum_location, located<std::int8_t>>);
static_assert(combines<minimum_location, located<ddl::half>>, "the values are moved, not computed with");
static_assert(!combines<minimum_location, float>, "there is no place in a bare float");
static_assert(!combines<minimum_location, located<bool>> && !combines<maximum_location, located<std::complex<float>>>);

namespace {
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Folds in every order that a schedule may choose, and expects the same place each time.
template <class Op>
void every_order_finds(std::vector<float> values, std::int64_t expected) {
    std::vector<std::int64_t> order;
    for (std::size_t index = 0; index < values.size(); ++index) order.push_back(static_cast<std::int64_t>(index));
    do {
        const auto at = [&](std::int64_t index) {
            return located<float>{values[static_cast<std::size_t>(index)], index};
        };
        auto found = at(order.front());
        for (std::size_t next = 1; next < order.size(); ++next) found = Op{}(found, at(order[next]));
        BOOST_TEST(found.index == expected);
    } while (std::next_permutation(order.begin(), order.end()));
}
}  // namespace

BOOST_AUTO_TEST_CASE(the_place_of_the_smallest_and_of_the_largest) {
    every_order_finds<minimum_location>({3, 1, 2}, 1);
    every_order_finds<maximum_location>({1, 2, 3, 0}, 2);
}

BOOST_AUTO_TEST_CASE(equal_values_give_the_lowest_index) {
    every_order_finds<minimum_location>({5, 1, 1, 1}, 1);
    every_order_finds<maximum_location>({0, 7, 7, 1, 7}, 1);
    every_order_finds<minimum_location>({0.0f, -0.0f, 0.0f}, 0);
}

BOOST_AUTO_TEST_CASE(nan_wins_and_of_two_the_lower_index) {
    every_order_finds<minimum_location>({1, -INFINITY, not_a_number, 2, not_a_number}, 2);
    every_order_finds<maximum_location>({1, INFINITY, not_a_number, 2, not_a_number}, 2);
}

BOOST_AUTO_TEST_CASE(the_value_comes_with_its_place) {
    BOOST_TEST((minimum_location{}(located<int>{4, 9}, located<int>{-4, 12}) == located<int>{-4, 12}));
    BOOST_TEST((maximum_location{}(located<int>{4, 9}, located<int>{-4, 12}) == located<int>{4, 9}));
}
