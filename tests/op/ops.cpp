// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/elements.hpp>
#include <ddl/op/ops.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace {

template <class... Ops>
struct list {};
using ops =
    list<ddl::sum, ddl::product, ddl::average, ddl::minimum, ddl::maximum, ddl::bit_and, ddl::bit_or, ddl::bit_xor,
         ddl::logical_and, ddl::logical_or, ddl::logical_xor, ddl::minimum_location, ddl::maximum_location>;

/// One letter an op, in the order of the list: does it have a meaning for `Element`?
template <class Element, class... Ops>
std::string row(list<Ops...>) {
    return {(ddl::combines<Ops, Element> ? 'x' : '.')...};
}

template <class... Ops>
std::string commuting(list<Ops...>) {
    return {(ddl::commutes<Ops> ? 'x' : '.')...};
}

template <class... Ops>
constexpr bool stateless(list<Ops...>) {
    return (std::is_empty_v<Ops> && ...);
}

struct opaque {};

}  // namespace

static_assert(stateless(ops{}), "an op of ours is a type, and needs no bytes in a kernel's arguments");

BOOST_AUTO_TEST_CASE(which_op_has_a_meaning_for_which_element) {
    //                                               sum, product, average
    //                                               |  minimum, maximum
    //                                               |  | bit_and, bit_or, bit_xor
    //                                               |  | |  logical_and, logical_or, logical_xor
    //                                               |  | |  |  minimum_location, maximum_location
    const std::string integers = "xxxxxxxxxxx..", floats = "xxxxx........";
    BOOST_TEST(row<float>(ops{}) == floats);
    BOOST_TEST(row<double>(ops{}) == floats);
    BOOST_TEST(row<long double>(ops{}) == floats);
    BOOST_TEST(row<ddl::half>(ops{}) == floats);
    BOOST_TEST(row<ddl::bfloat16>(ops{}) == floats);
    BOOST_TEST(row<ddl::float8_e4m3>(ops{}) == floats);
    BOOST_TEST(row<ddl::float8_e5m2>(ops{}) == floats);
    const auto of_compilers_half = [&]<class Half>() {
        if constexpr (ddl::complete<Half>) BOOST_TEST(row<Half>(ops{}) == floats);
    };
    of_compilers_half.operator()<ddl::compiler_half>();
    BOOST_TEST(row<char>(ops{}) == integers);
    BOOST_TEST(row<std::int8_t>(ops{}) == integers);
    BOOST_TEST(row<std::uint16_t>(ops{}) == integers);
    BOOST_TEST(row<std::int32_t>(ops{}) == integers);
    BOOST_TEST(row<std::uint64_t>(ops{}) == integers);
    BOOST_TEST(row<bool>(ops{}) == "........xxx..");
    BOOST_TEST(row<std::byte>(ops{}) == "...xxxxx.....");
    BOOST_TEST(row<std::complex<float>>(ops{}) == "xxx..........");
    BOOST_TEST(row<std::complex<double>>(ops{}) == "xxx..........");
    BOOST_TEST(row<ddl::located<float>>(ops{}) == "...........xx");
    BOOST_TEST(row<ddl::located<std::int16_t>>(ops{}) == "...........xx");
    BOOST_TEST(row<ddl::located<ddl::bfloat16>>(ops{}) == "...........xx");
    BOOST_TEST(row<ddl::located<bool>>(ops{}) == ".............");
    BOOST_TEST(row<opaque>(ops{}) == ".............");
}

BOOST_AUTO_TEST_CASE(all_of_ours_commute) { BOOST_TEST(commuting(ops{}) == "xxxxxxxxxxxxx"); }

BOOST_AUTO_TEST_CASE(a_thousand_bfloat16_are_added_in_float_where_eight_bits_would_stop_at_256) {
    ddl::accumulator_t<ddl::sum, ddl::bfloat16> total = 0;
    for (int rank = 0; rank < 1000; ++rank) total = ddl::sum{}(total, float{ddl::bfloat16(1.0f)});
    BOOST_TEST(float{ddl::bfloat16(total)} == 1000.0f);
}
