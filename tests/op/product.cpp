// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/half.hpp>
#include <ddl/op/product.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

using ddl::combines;
using ddl::product;

static_assert(ddl::commutes<product> && ddl::op_name<product>() == std::string_view{"product"});
static_assert(combines<product, double> && combines<product, char> && combines<product, std::complex<double>>);
static_assert(!combines<product, bool> && !combines<product, std::byte>);
static_assert(std::is_same_v<ddl::accumulator_t<product, ddl::half>, float> && combines<product, ddl::half>);

BOOST_AUTO_TEST_CASE(it_multiplies) {
    BOOST_TEST(product{}(1.5, 2.0) == 3.0);
    BOOST_TEST((product{}(std::complex{0.0, 1.0}, std::complex{0.0, 1.0}) == std::complex{-1.0, 0.0}));
}

BOOST_AUTO_TEST_CASE(every_pair_of_small_integers_wraps) {
    for (int a = -128; a < 128; ++a)
        for (int b = -128; b < 128; ++b) {
            const auto expected = static_cast<std::int8_t>(a * b);
            if (product{}(static_cast<std::int8_t>(a), static_cast<std::int8_t>(b)) != expected)
                BOOST_ERROR(a << " * " << b);
        }
}

BOOST_AUTO_TEST_CASE(short_unsigned_integers_wrap_although_they_promote_to_int) {
    BOOST_TEST(product{}(std::uint16_t{65535}, std::uint16_t{65535}) == 1u);
}

BOOST_AUTO_TEST_CASE(wide_integers_wrap_too) {
    BOOST_TEST(product{}(std::numeric_limits<int>::max(), 2) == -2);
    BOOST_TEST(product{}(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
               std::numeric_limits<std::int64_t>::min());
}

// What overflows is no constant, so the compiler says whether they wrap.
template <class Integer>
constexpr bool wraps_in_128_bits() {
    if constexpr (ddl::complete<Integer>) {
        constexpr Integer large = Integer{1} << 126;
        static_assert(product{}(large, Integer{2}) < 0 && product{}(large, Integer{4}) == 0);
    }
    return true;
}
static_assert(wraps_in_128_bits<ddl::compiler_int128>());
