// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/bfloat16.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "nearest.hpp"

using ddl::bfloat16;

static_assert(ddl::element<bfloat16>, "its bytes are all of it");
static_assert(sizeof(bfloat16) == 2, "that is what it is for");
static_assert(std::is_trivial_v<bfloat16>, "an array of them costs nothing to make");
static_assert(std::is_same_v<ddl::wide_t<bfloat16>, float>, "sums of it are kept in float");
static_assert(ddl::element_name<bfloat16>() == std::string_view{"bfloat16"});
static_assert(!std::is_convertible_v<float, bfloat16>, "losing bits has to be written out");
static_assert(std::is_convertible_v<bfloat16, float>, "gaining some has not");
static_assert(bfloat16(1.5f) < bfloat16(2.5f) && bfloat16(1.5f) == 1.5f && bfloat16(-0.0f) == bfloat16(0.0f),
              "it compares as float does");
static_assert(bfloat16(1.0f).bits == 0x3f80 && bfloat16(-2.0f).bits == 0xc000, "also at compile time");
static_assert(float(bfloat16::from_bits(0x3f80)) == 1.0f);

namespace {
const nearest oracle{8, 7, 0x7f80u + 1u};  // the last one is infinity
constexpr std::uint16_t infinity = 0x7f80;
const float inf = std::numeric_limits<float>::infinity();
}  // namespace

BOOST_AUTO_TEST_CASE(every_pattern_widens_to_the_number_it_stands_for) {
    for (unsigned code = 0; code < infinity; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        BOOST_TEST(double{bfloat16::from_bits(bits)} == oracle.value(code), "pattern " << code);
        const float negative = bfloat16::from_bits(static_cast<std::uint16_t>(bits | 0x8000u));
        BOOST_TEST(double{negative} == -oracle.value(code), "pattern " << code);
        BOOST_TEST(std::signbit(negative), "pattern " << code);
    }
}

BOOST_AUTO_TEST_CASE(every_pattern_survives_the_way_to_float_and_back) {
    for (unsigned code = 0; code < 0x10000u; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        if ((bits & 0x7fffu) > infinity) continue;
        BOOST_TEST(bfloat16(float(bfloat16::from_bits(bits))).bits == bits);
    }
}

BOOST_AUTO_TEST_CASE(every_nan_stays_a_nan_with_its_sign_and_is_quiet) {
    for (unsigned code = infinity + 1u; code < 0x8000u; ++code)
        for (const unsigned sign : {0u, 0x8000u}) {
            const float wide = bfloat16::from_bits(static_cast<std::uint16_t>(code | sign));
            BOOST_TEST(std::isnan(wide));
            BOOST_TEST(bfloat16(wide).bits == (code | sign | 0x0040u));
        }
}

BOOST_AUTO_TEST_CASE(a_nan_whose_upper_bits_are_zero_does_not_become_infinity) {
    for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7f801fffu})
        BOOST_TEST(std::isnan(float(bfloat16(std::bit_cast<float>(bits)))), "bits " << bits);
}

BOOST_AUTO_TEST_CASE(a_float_is_rounded_to_the_nearest_and_of_two_to_the_even) {
    for (const float question : oracle.questions()) {
        const unsigned expected = oracle.code(question);
        BOOST_TEST(bfloat16(question).bits == expected, question);
        BOOST_TEST(bfloat16(-question).bits == (expected | 0x8000u), -question);
    }
}

BOOST_AUTO_TEST_CASE(what_is_too_large_becomes_infinity) {
    BOOST_TEST(bfloat16(inf).bits == infinity);
    BOOST_TEST(bfloat16(-inf).bits == (infinity | 0x8000u));
    BOOST_TEST(bfloat16(std::numeric_limits<float>::max()).bits == infinity);
    BOOST_TEST(float(bfloat16::from_bits(infinity)) == inf);
}

static_assert(bfloat16(0x1.01p0f).bits == 0x3f80 && bfloat16(0x1.03p0f).bits == 0x3f82,
              "ties go to the even neighbour");
