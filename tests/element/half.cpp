// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/half.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "nearest.hpp"

using ddl::half;

static_assert(ddl::element<half>, "its bytes are all of it");
static_assert(sizeof(half) == 2, "that is what it is for");
static_assert(std::is_trivial_v<half>, "an array of them costs nothing to make");
static_assert(std::is_same_v<ddl::wide_t<half>, float>, "sums of it are kept in float");
static_assert(ddl::element_name<half>() == std::string_view{"float16"});
static_assert(!std::is_convertible_v<float, half>, "losing bits has to be written out");
static_assert(std::is_convertible_v<half, float>, "gaining some has not");
static_assert(half(1.5f) < half(2.5f) && half(1.5f) == 1.5f && half(-0.0f) == half(0.0f), "it compares as float does");
static_assert(half(1.0f).bits == 0x3c00 && half(-2.0f).bits == 0xc000, "also at compile time");
static_assert(float(half::from_bits(0x3c00)) == 1.0f);

namespace {
const nearest oracle{5, 10, 0x7c00u + 1u};  // the last one is infinity
constexpr std::uint16_t infinity = 0x7c00;
const float inf = std::numeric_limits<float>::infinity();
}  // namespace

BOOST_AUTO_TEST_CASE(every_pattern_widens_to_the_number_it_stands_for) {
    for (unsigned code = 0; code < infinity; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        BOOST_TEST(double{half::from_bits(bits)} == oracle.value(code), "pattern " << code);
        const float negative = half::from_bits(static_cast<std::uint16_t>(bits | 0x8000u));
        BOOST_TEST(double{negative} == -oracle.value(code), "pattern " << code);
        BOOST_TEST(std::signbit(negative), "pattern " << code);
    }
}

BOOST_AUTO_TEST_CASE(every_pattern_survives_the_way_to_float_and_back) {
    for (unsigned code = 0; code < 0x10000u; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        if ((bits & 0x7fffu) > infinity) continue;
        BOOST_TEST(half(float(half::from_bits(bits))).bits == bits);
    }
}

BOOST_AUTO_TEST_CASE(every_nan_stays_a_nan_with_its_sign_and_payload) {
    for (unsigned code = infinity + 1u; code < 0x8000u; ++code)
        for (const unsigned sign : {0u, 0x8000u}) {
            const float wide = half::from_bits(static_cast<std::uint16_t>(code | sign));
            BOOST_TEST(std::isnan(wide));
            BOOST_TEST(std::isnan(float(half(wide))));
            BOOST_TEST((half(wide).bits | 0x0200u) == (code | sign | 0x0200u), "whether it is quiet is the machine's");
        }
}

BOOST_AUTO_TEST_CASE(a_nan_whose_upper_bits_are_zero_does_not_become_infinity) {
    for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7f801fffu})
        BOOST_TEST(std::isnan(float(half(std::bit_cast<float>(bits)))), "bits " << bits);
}

BOOST_AUTO_TEST_CASE(a_float_is_rounded_to_the_nearest_and_of_two_to_the_even) {
    for (const float question : oracle.questions()) {
        const unsigned expected = oracle.code(question);
        BOOST_TEST(half(question).bits == expected, question);
        BOOST_TEST(half(-question).bits == (expected | 0x8000u), -question);
    }
}

BOOST_AUTO_TEST_CASE(what_is_too_large_becomes_infinity) {
    BOOST_TEST(half(inf).bits == infinity);
    BOOST_TEST(half(-inf).bits == (infinity | 0x8000u));
    BOOST_TEST(half(std::numeric_limits<float>::max()).bits == infinity);
    BOOST_TEST(float(half::from_bits(infinity)) == inf);
}

/// Where the compiler has a half.
template <class Half>
void agree_to_the_bit() {
    if constexpr (ddl::complete<Half>) {
        for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 4099) {
            const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
            const auto expected = std::bit_cast<std::uint16_t>(static_cast<Half>(value));
            if (half(value).bits != expected) BOOST_TEST(half(value).bits == expected, "bits " << bits);
        }
        for (unsigned code = 0; code < 0x10000u; ++code) {
            const auto bits = static_cast<std::uint16_t>(code);
            const float expected = static_cast<float>(std::bit_cast<Half>(bits));
            const float widened = half::from_bits(bits);
            BOOST_TEST(std::bit_cast<std::uint32_t>(widened) == std::bit_cast<std::uint32_t>(expected),
                       "bits " << bits);
        }
    }
}

BOOST_AUTO_TEST_CASE(it_agrees_with_the_compilers_own_type_to_the_bit) { agree_to_the_bit<ddl::compiler_half>(); }

static_assert(half(65519.0f).bits == 0x7bff && half(65520.0f).bits == 0x7c00,
              "infinity begins half a unit above 65504");
static_assert(half(0x1p-25f).bits == 0 && half(0x1.000002p-25f).bits == 1, "half of the smallest number is a tie");
