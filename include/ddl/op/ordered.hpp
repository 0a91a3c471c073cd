// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace ddl {

/// Has an order to take a minimum by: `a < b`, and is not `bool`.
template <class Type>
concept ordered = !std::same_as<Type, bool> && requires(const Type a, const Type b) {
    { a < b } -> std::convertible_to<bool>;
};

/// Is this NaN, or, of a user's type, whatever differs from itself?
template <ordered Type>
constexpr bool unordered(const Type& value) noexcept {
    if constexpr (std::is_integral_v<Type>) return false;
    else if constexpr (requires { static_cast<bool>(value != value); }) return static_cast<bool>(value != value);
    else return false;
}

/// Equal values of these differ in the sign of zero alone, and so do their bits.
template <class Type>
concept signed_zero = std::same_as<Type, float> || std::same_as<Type, double>;

/// Of two equal values the one that is a negative zero, if one is.
template <signed_zero Type>
constexpr Type negative_of_equals(Type a, Type b) noexcept {
    using bits = std::conditional_t<sizeof(Type) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<Type>(std::bit_cast<bits>(a) | std::bit_cast<bits>(b));
}

/// Of two equal values the one that is a positive zero, if one is.
template <signed_zero Type>
constexpr Type positive_of_equals(Type a, Type b) noexcept {
    using bits = std::conditional_t<sizeof(Type) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<Type>(std::bit_cast<bits>(a) & std::bit_cast<bits>(b));
}

}  // namespace ddl
