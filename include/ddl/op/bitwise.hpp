// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>

#include <concepts>
#include <cstddef>

namespace ddl {

/// Is a row of bits: an integer or `std::byte`. `bool` is one truth, for which there are the logical ops.
template <class Type>
concept bit_pattern = (integer<Type> && !std::same_as<Type, bool>) || std::same_as<Type, std::byte>;

/// The bits that both have.
struct bit_and {
    static constexpr bool commutative = true;
    static constexpr const char* name = "bit_and";

    template <bit_pattern Type>
    constexpr Type operator()(Type a, Type b) const noexcept {
        return static_cast<Type>(a & b);
    }
};

/// The bits that one has.
struct bit_or {
    static constexpr bool commutative = true;
    static constexpr const char* name = "bit_or";

    template <bit_pattern Type>
    constexpr Type operator()(Type a, Type b) const noexcept {
        return static_cast<Type>(a | b);
    }
};

/// The bits that exactly one has.
struct bit_xor {
    static constexpr bool commutative = true;
    static constexpr const char* name = "bit_xor";

    template <bit_pattern Type>
    constexpr Type operator()(Type a, Type b) const noexcept {
        return static_cast<Type>(a ^ b);
    }
};

static_assert(combines<bit_and, int> && combines<bit_or, int> && combines<bit_xor, int>);

}  // namespace ddl
