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

/// Integers are named by sign and size: `long` and `long long` are the same element to a peer.
template <class Type>
    requires std::is_integral_v<Type>
struct naming<Type> {
    static constexpr const char* of_size(std::size_t bytes) noexcept {
        switch (bytes) {
            case 1: return std::is_signed_v<Type> ? "int8" : "uint8";
            case 2: return std::is_signed_v<Type> ? "int16" : "uint16";
            case 4: return std::is_signed_v<Type> ? "int32" : "uint32";
            case 8: return std::is_signed_v<Type> ? "int64" : "uint64";
            default: return std::is_signed_v<Type> ? "int128" : "uint128";
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
