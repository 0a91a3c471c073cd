// SPDX-License-Identifier: Apache-2.0
#include <ddl/op/ordered.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <complex>
#include <cstdint>
#include <limits>

struct only_less {
    int key;
    friend constexpr bool operator<(only_less a, only_less b) noexcept { return a.key < b.key; }
};

static_assert(ddl::ordered<int> && ddl::ordered<long double> && ddl::ordered<only_less>);
static_assert(!ddl::ordered<bool> && !ddl::ordered<std::complex<float>>);
static_assert(ddl::unordered(std::numeric_limits<float>::quiet_NaN()));
static_assert(!ddl::unordered(std::numeric_limits<float>::infinity()) && !ddl::unordered(3));
static_assert(!ddl::unordered(only_less{1}), "a type without != has no NaN that we could see");
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
