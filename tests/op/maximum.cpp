// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/half.hpp>
#include <ddl/op/maximum.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

using ddl::combines;
using ddl::maximum;

namespace {
struct version {
    int major_number, minor_number;
    friend constexpr bool operator<(version a, version b) noexcept {
        return a.major_number != b.major_number ? a.major_number < b.major_number : a.minor_number < b.minor_number;
    }
};
}  // namespace

static_assert(ddl::commutes<maximum> && ddl::op_name<maximum>() == std::string_view{"maximum"});
static_assert(combines<maximum, float> && combines<maximum, std::uint8_t> && combines<maximum, std::byte>);
static_assert(combines<maximum, version>, "anything that has a < b");
static_assert(!combines<maximum, bool>, "write logical_or");
static_assert(!combines<maximum, std::complex<float>>, "complex numbers have no order");
static_assert(std::is_same_v<ddl::accumulator_t<maximum, ddl::half>, ddl::half> && combines<maximum, ddl::half>);
static_assert(std::is_same_v<ddl::accumulator_t<maximum, float>, float>);

BOOST_AUTO_TEST_CASE(every_pair_of_small_integers) {
    for (int a = -128; a < 128; ++a)
        for (int b = -128; b < 128; ++b)
            if (maximum{}(static_cast<std::int8_t>(a), static_cast<std::int8_t>(b)) != (a > b ? a : b))
                BOOST_ERROR(a << " and " << b);
}

BOOST_AUTO_TEST_CASE(every_pair_of_special_numbers) {
    const double inf = std::numeric_limits<double>::infinity();
    const double ascending[] = {-inf, -1.0, -5.0e-324, -0.0, 0.0, 5.0e-324, 1.0, inf};
    for (const double& a : ascending)
        for (const double& b : ascending) {
            const double expected = &a > &b ? a : b;
            BOOST_TEST(std::bit_cast<std::uint64_t>(maximum{}(a, b)) == std::bit_cast<std::uint64_t>(expected),
                       a << " and " << b << ", the negative zero below the positive one");
            BOOST_TEST(maximum{}(static_cast<float>(a), static_cast<float>(b)) == static_cast<float>(expected));
            BOOST_TEST(std::signbit(maximum{}(static_cast<float>(a), static_cast<float>(b))) == std::signbit(expected));
        }
}

BOOST_AUTO_TEST_CASE(nan_wins_whichever_side_holds_it) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float other : {-INFINITY, -1.0f, 0.0f, 1.0f, INFINITY, nan}) {
        BOOST_TEST(std::isnan(maximum{}(nan, other)));
        BOOST_TEST(std::isnan(maximum{}(other, nan)));
        BOOST_TEST(std::isnan(maximum{}(static_cast<long double>(nan), static_cast<long double>(other))));
        BOOST_TEST(std::isnan(maximum{}(static_cast<long double>(other), static_cast<long double>(nan))));
    }
}

BOOST_AUTO_TEST_CASE(a_users_type_is_compared_by_its_own_order) {
    const version older{1, 9}, newer{2, 0};
    BOOST_TEST(maximum{}(older, newer).major_number == 2);
    BOOST_TEST(maximum{}(newer, older).major_number == 2);
}
