// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>

#include <concepts>
#include <type_traits>

namespace ddl {

/// `a * b`, of anything that has it but `bool` (there, write `logical_and`). Integers wrap.
struct product {
    static constexpr bool commutative = true;
    static constexpr const char* name = "product";

    template <class Type>
        requires(!std::same_as<Type, bool>) && requires(const Type a, const Type b) {
            { a* b } -> std::convertible_to<Type>;
        }
    constexpr Type operator()(const Type& a, const Type& b) const noexcept {
        if constexpr (std::is_integral_v<Type>) {
            // Signed overflow would be undefined, also that of the `int` to which a short unsigned type promotes.
            using wrapping = decltype(0u + std::make_unsigned_t<Type>{});
            return static_cast<Type>(static_cast<wrapping>(a) * static_cast<wrapping>(b));
        } else {
            return a * b;
        }
    }
};

static_assert(combines<product, float> && commutes<product>);

}  // namespace ddl
