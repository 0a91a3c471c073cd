// SPDX-License-Identifier: Apache-2.0
#include <ddl/op/bitwise.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

using ddl::bit_and;
using ddl::bit_or;
using ddl::bit_xor;
using ddl::combines;

static_assert(ddl::commutes<bit_and> && ddl::commutes<bit_or> && ddl::commutes<bit_xor>);
static_assert(ddl::op_name<bit_and>() == std::string_view{"bit_and"});
static_assert(ddl::op_name<bit_or>() == std::string_view{"bit_or"});
static_assert(ddl::op_name<bit_xor>() == std::string_view{"bit_xor"});
static_assert(combines<bit_and, int> && combines<bit_or, std::uint8_t> && combines<bit_xor, std::int64_t>);
static_assert(combines<bit_and, std::byte> && combines<bit_or, std::byte> && combines<bit_xor, std::byte>);
template <class Integer>
constexpr bool has_bits() {
    if constexpr (!ddl::complete<Integer>) return true;
    else return combines<bit_and, Integer> && combines<bit_or, Integer> && combines<bit_xor, Integer>;
}
static_assert(has_bits<ddl::compiler_int128>() && has_bits<ddl::compiler_uint128>());
static_assert(!combines<bit_and, float>, "the bits of a float are not its meaning");
static_assert(!combines<bit_or, bool>, "write logical_or");
static_assert(!combines<bit_xor, std::complex<float>>);
static_assert(std::is_same_v<decltype(bit_or{}(char{}, char{})), char>, "promotion is undone");

BOOST_AUTO_TEST_CASE(every_pair_of_bytes) {
    for (int a = 0; a < 256; ++a)
        for (int b = 0; b < 256; ++b) {
            const auto left = static_cast<std::uint8_t>(a), right = static_cast<std::uint8_t>(b);
            if (bit_and{}(left, right) != (a & b)) BOOST_ERROR(a << " and " << b);
            if (bit_or{}(left, right) != (a | b)) BOOST_ERROR(a << " or " << b);
            if (bit_xor{}(left, right) != (a ^ b)) BOOST_ERROR(a << " xor " << b);
            if (bit_xor{}(std::byte{left}, std::byte{right}) != std::byte(a ^ b))
                BOOST_ERROR("bytes " << a << " " << b);
        }
}

BOOST_AUTO_TEST_CASE(negative_integers_have_the_bits_of_two_complement) {
    BOOST_TEST(bit_and{}(-1, 5) == 5);
    BOOST_TEST(bit_or{}(std::int64_t{-2}, std::int64_t{1}) == -1);
    BOOST_TEST(bit_xor{}(static_cast<signed char>(-1), static_cast<signed char>(1)) == -2);
}
