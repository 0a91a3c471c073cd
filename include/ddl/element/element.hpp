// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ddl {

/// What a collective moves: a value that is its bytes, so that a peer may copy them. Pointers mean nothing to a peer.
template <class Type>
concept element =
    std::is_object_v<Type> && std::is_trivially_copyable_v<Type> && std::is_copy_assignable_v<Type> &&
    !std::is_const_v<Type> && !std::is_volatile_v<Type> && !std::is_pointer_v<Type> && !std::is_array_v<Type>;

/// The type in which values of `Type` are accumulated unless the op says otherwise. Specialise it for your own type.
template <class Type>
struct accumulation {
    using type = Type;
};

/// `float` for the narrow floating types, `Type` itself for all others.
template <class Type>
using wide_t = typename accumulation<Type>::type;

/// What errors and `explain` call a `Type`. Specialise it for your own type: `static constexpr const char* name`.
template <class Type>
struct naming {
    static constexpr const char* name = "struct";
};

#ifdef __SIZEOF_INT128__
/// The compiler's own integers of 128 bits; not `complete` where it has none.
__extension__ typedef __int128 compiler_int128;
__extension__ typedef unsigned __int128 compiler_uint128;
#else
struct compiler_int128;
struct compiler_uint128;
#endif

/// An integer, be it of 128 bits: the standard library says so of these under `-std=gnu++20`, and not under `-std=c++20`.
template <class Type>
concept integer =
    std::is_integral_v<Type> || std::same_as<Type, compiler_int128> || std::same_as<Type, compiler_uint128>;

/// The unsigned type in which integers are added and multiplied, for signed overflow is undefined: also that of the `int` to which
/// a shorter unsigned type would promote.
template <integer Type>
using wrapping_t = std::conditional_t<
    sizeof(Type) <= sizeof(unsigned), unsigned,
    std::conditional_t<sizeof(Type) <= sizeof(unsigned long long), unsigned long long, compiler_uint128>>;

/// Integers are named by sign and size: `long` and `long long` are the same element to a peer.
template <integer Type>
struct naming<Type> {
    static constexpr bool has_sign = std::is_signed_v<Type> || std::same_as<Type, compiler_int128>;
    static constexpr const char* of_size(std::size_t bytes) noexcept {
        switch (bytes) {
            case 1: return has_sign ? "int8" : "uint8";
            case 2: return has_sign ? "int16" : "uint16";
            case 4: return has_sign ? "int32" : "uint32";
            case 8: return has_sign ? "int64" : "uint64";
            default: return has_sign ? "int128" : "uint128";
        }
    }
    static constexpr const char* name = std::same_as<Type, bool> ? "bool" : of_size(sizeof(Type));
};

template <>
struct naming<float> {
    static constexpr const char* name = "float32";
};

template <>
struct naming<double> {
    static constexpr const char* name = "float64";
};

template <>
struct naming<long double> {
    static constexpr const char* name = "long double";
};

template <>
struct naming<std::byte> {
    static constexpr const char* name = "byte";
};

template <class Type>
constexpr const char* element_name() noexcept {
    return naming<Type>::name;
}

// Some compilers know the format before they name a type of it in C++: g++ for arm64 does so from version 13 on.
#if defined(__FLT16_MANT_DIG__) && (defined(__clang__) || defined(__x86_64__) || __GNUC__ >= 13)
/// The compiler's own half; not `complete` where it has none.
using compiler_half = _Float16;
#else
struct compiler_half;
#endif

/// A type that is defined.
template <class Type>
concept complete = requires { sizeof(Type); };

template <>
struct accumulation<compiler_half> {
    using type = float;
};

template <>
struct naming<compiler_half> {
    static constexpr const char* name = "float16";
};

}  // namespace ddl
