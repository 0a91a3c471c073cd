// SPDX-License-Identifier: Apache-2.0
#include <ddl/op/logical.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

using ddl::combines;
using ddl::logical_and;
using ddl::logical_or;
using ddl::logical_xor;

static_assert(ddl::commutes<logical_and> && ddl::commutes<logical_or> && ddl::commutes<logical_xor>);
static_assert(ddl::op_name<logical_and>() == std::string_view{"logical_and"});
static_assert(ddl::op_name<logical_or>() == std::string_view{"logical_or"});
static_assert(ddl::op_name<logical_xor>() == std::string_view{"logical_xor"});
static_assert(combines<logical_and, bool> && combines<logical_or, int> && combines<logical_xor, std::uint8_t>);
template <class Integer>
constexpr bool is_a_truth() {
    if constexpr (!ddl::complete<Integer>) return true;
    else return combines<logical_and, Integer> && combines<logical_or, Integer> && combines<logical_xor, Integer>;
}
static_assert(is_a_truth<ddl::compiler_int128>() && is_a_truth<ddl::compiler_uint128>());
static_assert(!combines<logical_and, float> && !combines<logical_or, std::byte> && !combines<logical_xor, double>);
static_assert(std::is_same_v<decltype(logical_or{}(true, true)), bool>);

BOOST_AUTO_TEST_CASE(every_pair_of_truths) {
    for (const bool a : {false, true})
        for (const bool b : {false, true}) {
            BOOST_TEST(logical_and{}(a, b) == (a && b));
            BOOST_TEST(logical_or{}(a, b) == (a || b));
            BOOST_TEST(logical_xor{}(a, b) == (a != b));
        }
}

BOOST_AUTO_TEST_CASE(every_integer_but_zero_is_true_and_the_result_is_0_or_1) {
    for (int a = -128; a < 128; ++a)
        for (int b = -128; b < 128; ++b) {
            const auto left = static_cast<std::int8_t>(a), right = static_cast<std::int8_t>(b);
            if (logical_and{}(left, right) != (a && b ? 1 : 0)) BOOST_ERROR(a << " and " << b);
            if (logical_or{}(left, right) != (a || b ? 1 : 0)) BOOST_ERROR(a << " or " << b);
            if (logical_xor{}(left, right) != (!a != !b ? 1 : 0)) BOOST_ERROR(a << " xor " << b);
        }
    BOOST_TEST(logical_and{}(2, 4) == 1, "2 & 4 has no bit set");
}
