// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/bfloat16.hpp>
#include <ddl/element/float8.hpp>
#include <ddl/element/half.hpp>
#include <ddl/op/average.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

using ddl::accumulator_t;
using ddl::average;
using ddl::combines;
using ddl::finishes;

struct only_a_sum {
    friend constexpr only_a_sum operator+(only_a_sum, only_a_sum) noexcept { return {}; }
};

namespace {
struct point {
    float x, y;
    friend constexpr point operator+(point a, point b) noexcept { return {a.x + b.x, a.y + b.y}; }
    friend constexpr point operator/(point a, double b) noexcept {
        return {static_cast<float>(a.x / b), static_cast<float>(a.y / b)};
    }
};
struct cents {
    int count;
    friend constexpr cents operator+(cents a, cents b) noexcept { return {a.count + b.count}; }
    friend constexpr cents operator/(cents a, int b) noexcept { return {a.count / b}; }
    friend cents operator/(cents, double) = delete;
};
/// The average of equal contributions and one more.
template <class Element>
Element average_of(Element first, Element rest, int ranks) {
    using accumulator = accumulator_t<average, Element>;
    auto total = static_cast<accumulator>(first);
    for (int rank = 1; rank < ranks; ++rank) total = average{}(total, static_cast<accumulator>(rest));
    return static_cast<Element>(ddl::finish(average{}, total, ranks));
}
}  // namespace

static_assert(ddl::commutes<average> && ddl::op_name<average>() == std::string_view{"average"});
static_assert(combines<average, float> && finishes<average, float> && finishes<average, long double>);
static_assert(combines<average, ddl::half> && finishes<average, ddl::bfloat16>);
static_assert(combines<average, ddl::float8_e4m3> && finishes<average, ddl::float8_e5m2>);
static_assert(combines<average, std::complex<float>> && finishes<average, std::complex<float>>);
static_assert(combines<average, point> && finishes<average, point>, "a user's type with a + b and a / double");
static_assert(combines<average, cents> && finishes<average, cents>, "a user's type with a + b and a / int");
static_assert(!combines<average, only_a_sum> && !finishes<average, only_a_sum>, "what cannot be divided has no mean");
static_assert(!combines<average, bool> && !combines<average, std::byte> && !finishes<average, bool>);
static_assert(std::is_same_v<accumulator_t<average, std::int8_t>, double>);
static_assert(std::is_same_v<accumulator_t<average, std::uint32_t>, double>);
static_assert(std::is_same_v<accumulator_t<average, std::int64_t>, std::int64_t>);
static_assert(std::is_same_v<accumulator_t<average, std::uint64_t>, std::uint64_t>);
static_assert(std::is_same_v<accumulator_t<average, ddl::half>, float>);
static_assert(std::is_same_v<accumulator_t<average, double>, double>);

BOOST_AUTO_TEST_CASE(floating_numbers) {
    BOOST_TEST(average_of(1.0, 2.0, 4) == 1.75);
    BOOST_TEST(average_of(1.0f, 2.0f, 3) == 5.0f / 3.0f);
    BOOST_TEST(float{average_of(ddl::half(1.0f), ddl::half(2.0f), 4)} == 1.75f);
    BOOST_TEST((average_of(std::complex{1.0f, 0.0f}, std::complex{3.0f, 4.0f}, 2) == std::complex{2.0f, 2.0f}));
    BOOST_TEST((average_of(std::complex{1.0, 0.0}, std::complex{3.0, 4.0}, 2) == std::complex{2.0, 2.0}));
}

BOOST_AUTO_TEST_CASE(integers_do_not_overflow_on_the_way_and_are_rounded_toward_zero) {
    BOOST_TEST(average_of<std::int8_t>(127, 127, 1000) == 127);
    BOOST_TEST(average_of<std::uint8_t>(255, 255, 1000) == 255u);
    BOOST_TEST(average_of(3, 4, 2) == 3);
    BOOST_TEST(average_of(-3, -4, 2) == -3);
    BOOST_TEST(average_of(std::numeric_limits<int>::max(), std::numeric_limits<int>::max(), 7) ==
               std::numeric_limits<int>::max());
}

BOOST_AUTO_TEST_CASE(sums_that_just_miss_a_multiple_are_rounded_down_whatever_the_ranks) {
    const auto check = []<class Element>(Element extreme, std::int64_t ranks) {
        // all but one bring the extreme, and one is a step nearer to zero
        const std::int64_t step = extreme < 0 ? 1 : -1;
        const std::int64_t total = std::int64_t{extreme} * ranks + step;
        const auto mean = static_cast<Element>(
            ddl::finish(average{}, static_cast<accumulator_t<average, Element>>(total), static_cast<int>(ranks)));
        BOOST_TEST(std::int64_t{mean} == total / ranks);
    };
    for (std::int64_t ranks = 1; ranks <= std::int64_t{1} << 21; ranks += ranks < 100 ? 1 : ranks / 7) {
        check(std::numeric_limits<std::int32_t>::max(), ranks);
        check(std::numeric_limits<std::int32_t>::min(), ranks);
        check(std::numeric_limits<std::uint32_t>::max(), ranks);
        check(std::numeric_limits<std::int16_t>::min(), ranks);
    }
}

BOOST_AUTO_TEST_CASE(more_ranks_than_the_type_can_count_are_no_matter) {
    BOOST_TEST(average{}.finish(std::int8_t{100}, 256) == 0, "256 is 0 in eight bits");
}

template <class Integer>
void check_128_bits() {
    if constexpr (ddl::complete<Integer>) {
        const Integer large = (Integer{1} << 120) + 1;
        BOOST_TEST((average{}.finish(static_cast<Integer>(large * 3), 3) == large));
    }
}
BOOST_AUTO_TEST_CASE(quotients_of_128_bits_are_exact) { check_128_bits<ddl::compiler_int128>(); }

BOOST_AUTO_TEST_CASE(users_types) {
    BOOST_TEST(average_of(point{1, 2}, point{2, 4}, 4).y == 3.5f);
    BOOST_TEST(average_of(cents{100}, cents{50}, 3).count == 66);
}
