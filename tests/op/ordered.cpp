// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/elements.hpp>
#include <ddl/op/maximum.hpp>
#include <ddl/op/minimum.hpp>
#include <ddl/op/ordered.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

struct only_less {
    int key;
    friend constexpr bool operator<(only_less a, only_less b) noexcept { return a.key < b.key; }
};

static_assert(ddl::ordered<int> && ddl::ordered<long double> && ddl::ordered<only_less>);
static_assert(!ddl::ordered<bool> && !ddl::ordered<std::complex<float>>);
static_assert(ddl::unordered(std::numeric_limits<float>::quiet_NaN()));
static_assert(!ddl::unordered(std::numeric_limits<float>::infinity()) && !ddl::unordered(3));
static_assert(!ddl::unordered(only_less{1}), "a type without != has no NaN that we could see");
static_assert(ddl::coded<ddl::half> && ddl::coded<ddl::bfloat16> && ddl::coded<ddl::float8_e4m3> &&
              ddl::coded<ddl::float8_e5m2>);
static_assert(!ddl::coded<float> && !ddl::coded<std::uint16_t> && !ddl::coded<only_less>);
static_assert(ddl::signed_zero<float> && ddl::signed_zero<double> && !ddl::signed_zero<int>);

BOOST_AUTO_TEST_CASE(of_equal_numbers_only_zeros_are_told_apart) {
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    for (const double value : {1.0, -3.0, 0.0, -0.0, 5.0e-324}) {
        BOOST_TEST(bits(ddl::negative_of_equals(value, value)) == bits(value));
        BOOST_TEST(bits(ddl::positive_of_equals(value, value)) == bits(value));
    }
    BOOST_TEST(bits(ddl::negative_of_equals(0.0, -0.0)) == bits(-0.0));
    BOOST_TEST(bits(ddl::positive_of_equals(0.0, -0.0)) == bits(0.0));
}

namespace {
using all_coded = std::tuple<ddl::half, ddl::bfloat16, ddl::float8_e4m3, ddl::float8_e5m2>;

/// Every code of 8 bits; of 16 those about zero, the normals, the greatest and the NaNs, of both signs.
template <class Element>
std::vector<unsigned> some_codes() {
    std::vector<unsigned> codes;
    if constexpr (sizeof(Element) == 1) {
        for (unsigned code = 0; code < 256; ++code) codes.push_back(code);
    } else {
        for (const unsigned sign : {0U, 0x8000U})
            for (const unsigned magnitude :
                 {0U, 1U, 0x400U, 0x3c00U, Element::greatest - 1U, Element::greatest + 0U, Element::greatest + 1U,
                  (Element::greatest | Element::quiet) + 0U, 0x7fffU})
                codes.push_back(sign | magnitude);
    }
    return codes;
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(coded_values_are_chosen_by_the_bits_that_float_would_choose, Element, all_coded) {
    using code = decltype(Element::bits);
    int wrong = 0;
    for (unsigned every = 0; every < 1U << (8 * sizeof(code)); ++every)
        for (const unsigned other : some_codes<Element>()) {
            const auto a = Element::from_bits(static_cast<code>(every)),
                       b = Element::from_bits(static_cast<code>(other));
            const auto check = [&wrong](auto op, Element x, Element y) {
                const float expected = op(static_cast<float>(x), static_cast<float>(y));
                const Element got = op(x, y);
                if (std::isinf(expected)) wrong += static_cast<float>(got) != expected;  // not all conversions keep it
                else wrong += got.bits != Element{expected}.bits;
            };
            check(ddl::maximum{}, a, b);
            check(ddl::maximum{}, b, a);
            check(ddl::minimum{}, a, b);
            check(ddl::minimum{}, b, a);
        }
    BOOST_TEST(wrong == 0);
}
