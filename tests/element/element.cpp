// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/element.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace {

struct point {
    float x, y;
};

struct price {
    std::int32_t cents;
};

template <class Type>
constexpr std::string_view name = ddl::element_name<Type>();

}  // namespace

template <>
struct ddl::accumulation<price> {
    using type = std::int64_t;
};
template <>
struct ddl::naming<price> {
    static constexpr const char* name = "price";
};

static_assert(ddl::element<float> && ddl::element<bool> && ddl::element<std::byte> && ddl::element<point>);
static_assert(!ddl::element<std::string>, "its bytes point at memory of this process");
static_assert(!ddl::element<int*>, "so does a pointer");
static_assert(!ddl::element<const float> && !ddl::element<volatile float>, "it must be written, by us alone");
static_assert(!ddl::element<float&> && !ddl::element<void> && !ddl::element<int()>, "it must be an object");
static_assert(!ddl::element<float[3]>, "it must be returned by an op");

static_assert(std::is_same_v<ddl::wide_t<float>, float> && std::is_same_v<ddl::wide_t<char>, char>);
static_assert(std::is_same_v<ddl::wide_t<point>, point>, "what we do not know is accumulated in itself");
static_assert(std::is_same_v<ddl::wide_t<price>, std::int64_t>, "a user's type says what it is accumulated in");

static_assert(name<float> == "float32" && name<double> == "float64" && name<long double> == "long double");
static_assert(name<std::int8_t> == "int8" && name<std::int16_t> == "int16" && name<std::int32_t> == "int32");
static_assert(name<std::uint8_t> == "uint8" && name<std::uint16_t> == "uint16" && name<std::uint32_t> == "uint32");
static_assert(name<std::int64_t> == "int64" && name<std::uint64_t> == "uint64");
static_assert(name<long> == name<std::int64_t> && name<long long> == name<std::int64_t>,
              "size and sign name an integer");
static_assert(name<char> == (std::is_signed_v<char> ? "int8" : "uint8") && name<char16_t> == "uint16");
template <class Signed, class Unsigned>
constexpr bool are_integers_of_128_bits() {
    if constexpr (!ddl::complete<Signed>) return true;
    else
        return ddl::integer<Signed> && ddl::integer<Unsigned> && name<Signed> == "int128" &&
               name<Unsigned> == "uint128" && std::is_same_v<ddl::wrapping_t<Signed>, Unsigned>;
}
static_assert(are_integers_of_128_bits<ddl::compiler_int128, ddl::compiler_uint128>(),
              "whatever the standard library says of them");
static_assert(ddl::integer<bool> && ddl::integer<char> && !ddl::integer<float> && !ddl::integer<std::byte>);
static_assert(!ddl::integer<point>);
static_assert(std::is_same_v<ddl::wrapping_t<std::int8_t>, unsigned> && sizeof(ddl::wrapping_t<long>) == sizeof(long));
static_assert(name<bool> == "bool" && name<std::byte> == "byte");
static_assert(name<point> == "struct", "a type that does not name itself");
static_assert(name<price> == "price", "and one that does");

template <class Half>
constexpr bool is_a_half() {
    if constexpr (!ddl::complete<Half>) return true;
    else return ddl::element<Half> && std::is_same_v<ddl::wide_t<Half>, float> && name<Half> == "float16";
}
static_assert(is_a_half<ddl::compiler_half>(), "the compiler's own, if it has one");

BOOST_AUTO_TEST_CASE(the_facts_above_held_when_this_was_compiled) { BOOST_TEST(name<float> == "float32"); }
