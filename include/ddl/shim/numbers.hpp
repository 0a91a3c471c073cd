// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/elements.hpp>
#include <ddl/op/ops.hpp>
#include <ddl/shim/ddl.h>

#include <bit>
#include <complex>
#include <concepts>
#include <string_view>

namespace ddl::shim {

/// A double that becomes a narrow element in one rounding: on the way the `float` next to it whose last bit is odd stands for it,
/// which is no tie between two narrow ones.
struct wide_value {
    double value;

    wide_value() = default;
    constexpr explicit wide_value(double from) noexcept : value{from} {}
    template <class Narrow>
        requires(std::same_as<Narrow, half> || std::same_as<Narrow, bfloat16>)
    constexpr explicit operator Narrow() const noexcept {
        const auto near = static_cast<float>(value);
        const auto bits = std::bit_cast<std::uint32_t>(near);
        if (near == value || value != value || bits % 2 == 1) return Narrow{near};
        return Narrow{std::bit_cast<float>((near < value) == (value > 0) ? bits + 1 : bits - 1)};
    }
};

/// The mean of floating values, added and divided in double whatever they are stored in.
struct average_in_double {
    static constexpr bool commutative = true;
    static constexpr const char* name = "average_in_double";
    template <class Element>
    using accumulator = std::conditional_t<sizeof(Element) == 2, wide_value, double>;
    constexpr double operator()(double a, double b) const noexcept { return a + b; }
    constexpr double finish(double total, int ranks) const noexcept { return total / ranks; }
    constexpr wide_value operator()(wide_value a, wide_value b) const noexcept { return wide_value{a.value + b.value}; }
    constexpr wide_value finish(wide_value total, int ranks) const noexcept { return wide_value{total.value / ranks}; }
};
static_assert(combines<average_in_double, float> && finishes<average_in_double, half>);
static_assert(static_cast<float>(static_cast<half>(wide_value{2049.0 + 1e-9})) == 2050.0F);  // float would see a tie
static_assert(static_cast<float>(static_cast<half>(wide_value{2049.0 - 1e-9})) == 2048.0F);

template <class... Types>
struct type_list {};

/// The types in the order of their numbers in ddl.h.
using built_in_elements =
    type_list<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t,
              std::uint64_t, half, bfloat16, float, double, std::complex<float>, std::complex<double>>;
using built_in_ops = type_list<sum, product, minimum, maximum, average, average_in_double, bit_and, bit_or, bit_xor,
                               logical_and, logical_or, logical_xor>;

/// What they are called there.
inline constexpr const char* element_names[] = {"bool",     "int8",   "uint8",  "int16",          "uint16",
                                                "int32",    "uint32", "int64",  "uint64",         "half",
                                                "bfloat16", "float",  "double", "complex<float>", "complex<double>"};
inline constexpr const char* op_names[] = {"sum",     "product",           "minimum",    "maximum",
                                           "average", "average_in_double", "bit_and",    "bit_or",
                                           "bit_xor", "logical_and",       "logical_or", "logical_xor"};
inline constexpr std::size_t element_sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};
static_assert(std::size(element_names) == DDL_ELEMENTS && std::size(element_sizes) == DDL_ELEMENTS &&
              std::size(op_names) == DDL_OPS);

/// Integers of one size and sign are one element, as they are to a peer.
template <class A, class B>
inline constexpr bool same_element =
    std::is_same_v<A, B> ||
    (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> && !std::is_same_v<B, bool> &&
     sizeof(A) == sizeof(B) && std::is_signed_v<A> == std::is_signed_v<B>);

template <class Type, class... Types>
constexpr int place_in(type_list<Types...>) noexcept {
    int place = 0;
    const bool found = ((same_element<Type, Types> || (++place, false)) || ...);
    return found ? place : -1;
}

/// The number of a type in ddl.h, -1 for a user's own.
template <class Type>
inline constexpr ddl_element element_number = place_in<Type>(built_in_elements{});
template <class Type>
inline constexpr ddl_op op_number = place_in<Type>(built_in_ops{});
static_assert(element_number<float> == DDL_FLOAT && element_number<long long> == DDL_INT64 &&
              op_number<average> == DDL_AVERAGE && op_number<logical_xor> == DDL_LOGICAL_XOR);

/// `ddl::half` and `half` are one name, `std::int32_t` and `int32` too.
constexpr std::string_view plain_name(std::string_view name) noexcept {
    for (const std::string_view prefix : {"::", "std::", "ddl::", "shim::"})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    if (name.ends_with("_t")) name.remove_suffix(2);
    return name;
}

}  // namespace ddl::shim
