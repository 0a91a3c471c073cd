// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/float8.hpp>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "nearest.hpp"

using ddl::float8_e4m3;
using ddl::float8_e5m2;

static_assert(sizeof(float8_e4m3) == 1 && sizeof(float8_e5m2) == 1, "that is what they are for");
static_assert(std::is_trivial_v<float8_e4m3> && std::is_trivial_v<float8_e5m2>,
              "an array of them costs nothing to make");
static_assert(std::is_same_v<ddl::wide_t<float8_e4m3>, float> && std::is_same_v<ddl::wide_t<float8_e5m2>, float>);
static_assert(ddl::element_name<float8_e4m3>() == std::string_view{"float8_e4m3"});
static_assert(ddl::element_name<float8_e5m2>() == std::string_view{"float8_e5m2"});
static_assert(!std::is_convertible_v<float, float8_e4m3>, "losing bits has to be written out");
static_assert(float8_e4m3(1.0f).bits == 0x38 && float8_e5m2(1.0f).bits == 0x3c, "also at compile time");
static_assert(float(float8_e4m3::from_bits(0x7e)) == 448.0f, "all but one pattern of the top exponent are numbers");
static_assert(float(float8_e5m2::from_bits(0x7b)) == 57344.0f);
static_assert(float8_e4m3(1.0f) < float8_e4m3(2.0f), "they compare as float does");

namespace {

struct e4m3 {
    using type = float8_e4m3;
    static constexpr unsigned largest = 0x7e;
    static nearest oracle() { return {4, 3, largest + 1}; }
};
struct e5m2 {
    using type = float8_e5m2;
    static constexpr unsigned largest = 0x7b;
    static nearest oracle() { return {5, 2, largest + 1}; }
};
using formats = boost::mpl::list<e4m3, e5m2>;
const float inf = std::numeric_limits<float>::infinity();

template <class Format>
float widened(unsigned code) {
    return Format::type::from_bits(static_cast<std::uint8_t>(code));
}

template <class Format>
unsigned narrowed(float value) {
    return typename Format::type(value).bits;
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_pattern_widens_to_the_number_it_stands_for_and_comes_back, Format, formats) {
    const nearest oracle = Format::oracle();
    for (unsigned code = 0; code <= Format::largest; ++code) {
        BOOST_TEST(double{widened<Format>(code)} == oracle.value(code), "pattern " << code);
        BOOST_TEST(double{widened<Format>(code | 0x80u)} == -oracle.value(code), "pattern " << code);
        BOOST_TEST(narrowed<Format>(widened<Format>(code)) == code);
        BOOST_TEST(narrowed<Format>(widened<Format>(code | 0x80u)) == (code | 0x80u), "also the negative zero");
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_float_is_rounded_to_the_nearest_and_of_two_to_the_even, Format, formats) {
    const nearest oracle = Format::oracle();
    for (const float question : oracle.questions()) {
        BOOST_TEST(narrowed<Format>(question) == oracle.code(question), question);
        BOOST_TEST(narrowed<Format>(-question) == (oracle.code(question) | 0x80u), -question);
    }
    for (std::uint64_t bits = 0; bits < 0x7f800000u; bits += 4099) {
        const float question = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        const unsigned expected = oracle.code(question);
        if (narrowed<Format>(question) != expected) BOOST_TEST(narrowed<Format>(question) == expected, question);
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_too_large_even_infinity_becomes_the_largest_number, Format, formats) {
    for (const float large : {inf, std::numeric_limits<float>::max(), 1.0e6f}) {
        BOOST_TEST(narrowed<Format>(large) == Format::largest);
        BOOST_TEST(narrowed<Format>(-large) == (Format::largest | 0x80u));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nan_stays_nan_and_keeps_its_sign, Format, formats) {
    for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
        BOOST_TEST(narrowed<Format>(std::bit_cast<float>(bits)) == 0x7fu);
        BOOST_TEST(narrowed<Format>(std::bit_cast<float>(bits | 0x80000000u)) == 0xffu);
    }
    BOOST_TEST(std::isnan(widened<Format>(0x7f)));
    BOOST_TEST(std::isnan(widened<Format>(0xff)));
}

BOOST_AUTO_TEST_CASE(e5m2_has_two_infinities_and_three_nans_of_either_sign) {
    BOOST_TEST(widened<e5m2>(0x7c) == inf);
    BOOST_TEST(widened<e5m2>(0xfc) == -inf);
    for (const unsigned code : {0x7du, 0x7eu, 0x7fu}) {
        BOOST_TEST(std::isnan(widened<e5m2>(code)));
        BOOST_TEST(std::isnan(widened<e5m2>(code | 0x80u)));
    }
}
