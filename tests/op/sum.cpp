// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/bfloat16.hpp>
#include <ddl/element/half.hpp>
#include <ddl/op/sum.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

using ddl::combines;
using ddl::sum;

namespace {
struct point {
    int x, y;
    friend constexpr point operator+(point a, point b) noexcept { return {a.x + b.x, a.y + b.y}; }
};
struct opaque {};
}  // namespace

static_assert(ddl::commutes<sum> && ddl::op_name<sum>() == std::string_view{"sum"});
static_assert(combines<sum, float> && combines<sum, long double> && combines<sum, char> && combines<sum, std::int64_t>);
static_assert(combines<sum, std::complex<float>>, "without <ddl/element/complex.hpp> too");
static_assert(combines<sum, point>, "anything that has a + b");
static_assert(!combines<sum, bool>, "true + true is neither 2 nor clear");
static_assert(!combines<sum, std::byte> && !combines<sum, opaque> && !combines<sum, int*>);
static_assert(!ddl::finishes<sum, float>, "nothing is left to do");
static_assert(std::is_same_v<ddl::accumulator_t<sum, ddl::half>, float>, "narrow elements are added in float");
static_assert(combines<sum, ddl::half> && combines<sum, ddl::bfloat16>);
static_assert(std::is_same_v<decltype(sum{}(char{1}, char{2})), char>, "promotion is undone");

BOOST_AUTO_TEST_CASE(it_adds) {
    BOOST_TEST(sum{}(1.5, 2.25) == 3.75);
    BOOST_TEST((sum{}(std::complex{1.0f, 2.0f}, std::complex{3.0f, 4.0f}) == std::complex{4.0f, 6.0f}));
    BOOST_TEST(sum{}(point{1, 2}, point{3, 4}).y == 6);
}

BOOST_AUTO_TEST_CASE(every_pair_of_small_integers_wraps) {
    for (int a = -128; a < 128; ++a)
        for (int b = -128; b < 128; ++b) {
            const auto expected = static_cast<std::int8_t>(a + b);
            if (sum{}(static_cast<std::int8_t>(a), static_cast<std::int8_t>(b)) != expected)
                BOOST_ERROR(a << " + " << b);
        }
}

BOOST_AUTO_TEST_CASE(wide_integers_wrap_too) {
    BOOST_TEST(sum{}(std::numeric_limits<int>::max(), 1) == std::numeric_limits<int>::min());
    BOOST_TEST(sum{}(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
               std::numeric_limits<std::int64_t>::max());
    BOOST_TEST(sum{}(std::uint16_t{65535}, std::uint16_t{2}) == 1u);
}

// What overflows is no constant, so the compiler says whether they wrap.
template <class Integer>
constexpr bool wraps_in_128_bits() {
    if constexpr (ddl::complete<Integer>) {
        constexpr Integer half = Integer{1} << 126;
        static_assert(sum{}(half, half) < 0 && sum{}(sum{}(half, half), sum{}(half, half)) == 0);
    }
    return true;
}
static_assert(wraps_in_128_bits<ddl::compiler_int128>());
