// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/half.hpp>
#include <ddl/op/minimum.hpp>

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
using ddl::minimum;

namespace {
struct version {
    int major_number, minor_number;
    friend constexpr bool operator<(version a, version b) noexcept {
        return a.major_number != b.major_number ? a.major_number < b.major_number : a.minor_number < b.minor_number;
    }
};
}  // namespace

static_assert(ddl::commutes<minimum> && ddl::op_name<minimum>() == std::string_view{"minimum"});
static_assert(combines<minimum, float> && combines<minimum, std::uint8_t> && combines<minimum, std::byte>);
static_assert(combines<minimum, version>, "anything that has a < b");
static_assert(!combines<minimum, bool>, "write logical_and");
static_assert(!combines<minimum, std::complex<float>>, "complex numbers have no order");
static_assert(std::is_same_v<ddl::accumulator_t<minimum, ddl::half>, ddl::half> && combines<minimum, ddl::half>);
static_assert(std::is_same_v<ddl::accumulator_t<minimum, float>, float>);

BOOST_AUTO_TEST_CASE(every_pair_of_small_integers) {
    for (int a = -128; a < 128; ++a)
        for (int b = -128; b < 128; ++b)
            if (minimum{}(static_cast<std::int8_t>(a), static_cast<std::int8_t>(b)) != (a < b ? a : b))
                BOOST_ERROR(a << " and " << b);
}

BOOST_AUTO_TEST_CASE(every_pair_of_special_numbers) {
    const double inf = std::numeric_limits<double>::infinity();
    const double ascending[] = {-inf, -1.0, -5.0e-324, -0.0, 0.0, 5.0e-324, 1.0, inf};
    for (const double& a : ascending)
        for (const double& b : ascending) {
            const double expected = &a < &b ? a : b;
            BOOST_TEST(std::bit_cast<std::uint64_t>(minimum{}(a, b)) == std::bit_cast<std::uint64_t>(expected),
                       a << " and " << b << ", the negative zero below the positive one");
            BOOST_TEST(minimum{}(static_cast<float>(a), static_cast<float>(b)) == static_cast<float>(expected));
            BOOST_TEST(std::signbit(minimum{}(static_cast<float>(a), static_cast<float>(b))) == std::signbit(expected));
        }
}

BOOST_AUTO_TEST_CASE(nan_wins_whichever_side_holds_it) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float other : {-INFINITY, -1.0f, 0.0f, 1.0f, INFINITY, nan}) {
        BOOST_TEST(std::isnan(minimum{}(nan, other)));
        BOOST_TEST(std::isnan(minimum{}(other, nan)));
        BOOST_TEST(std::isnan(minimum{}(static_cast<long double>(nan), static_cast<long double>(other))));
        BOOST_TEST(std::isnan(minimum{}(static_cast<long double>(other), static_cast<long double>(nan))));
    }
}

BOOST_AUTO_TEST_CASE(a_users_type_is_compared_by_its_own_order) {
    const version older{1, 9}, newer{2, 0};
    BOOST_TEST(minimum{}(older, newer).major_number == 1);
    BOOST_TEST(minimum{}(newer, older).major_number == 1);
}
