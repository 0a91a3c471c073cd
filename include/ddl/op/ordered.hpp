// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
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

/// A number of 8 or 16 bits, sign and magnitude. Its `bits` rise with the magnitude up to `greatest`; above are NaNs, which
/// `quiet` turns into those that its own conversions make.
template <class Type>
concept coded = ordered<Type> && requires(const Type value) {
    requires sizeof(value.bits) == sizeof(Type) && std::is_unsigned_v<decltype(value.bits)>;
    { Type::from_bits(value.bits) } -> std::same_as<Type>;
    requires std::same_as<decltype(Type::greatest), const decltype(value.bits)>;
    requires std::same_as<decltype(Type::quiet), const decltype(value.bits)>;
};

/// What a minimum or a maximum of values of `Type` is accumulated in. It computes nothing: coded values need no wider type.
template <class Type>
using chosen_from = std::conditional_t<coded<Type> || !ordered<wide_t<Type>>, Type, wide_t<Type>>;

enum class extremum { smallest, largest };

/// The smaller or the larger of two coded values: of two zeros the negative one is the smaller, and a NaN wins. The value that a
/// comparison as `float` finds, without a conversion back, which may saturate. Masks and no branch: a loop over bits vectorises.
template <extremum Which, coded Type>
constexpr Type extreme(Type a, Type b) noexcept {
    using code = decltype(a.bits);
    using signed_code = std::make_signed_t<code>;
    using limits = std::numeric_limits<signed_code>;
    constexpr signed_code magnitude = limits::max();
    constexpr auto winner = static_cast<code>(Which == extremum::largest ? limits::max() : limits::min());
    const auto above = [](signed_code left, signed_code right) { return static_cast<code>(-(left > right)); };
    const auto is_nan = [above](code bits) {
        return above(bits & magnitude, static_cast<signed_code>(Type::greatest));
    };
    const auto rank = [is_nan](code bits) {
        const auto sign = static_cast<code>(static_cast<signed_code>(bits) >> (8 * sizeof(code) - 1));
        const auto number = static_cast<code>(bits ^ (sign & magnitude));
        const code nan = is_nan(bits);
        return static_cast<signed_code>((number & ~nan) | (winner & nan));
    };
    const code second =
        Which == extremum::largest ? above(rank(b.bits), rank(a.bits)) : above(rank(a.bits), rank(b.bits));
    const auto won = static_cast<code>((b.bits & second) | (a.bits & ~second));
    return Type::from_bits(static_cast<code>(won | (Type::quiet & is_nan(won))));
}

}  // namespace ddl
