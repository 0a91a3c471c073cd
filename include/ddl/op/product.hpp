// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>

#include <concepts>

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
        if constexpr (integer<Type>)
            return static_cast<Type>(static_cast<wrapping_t<Type>>(a) * static_cast<wrapping_t<Type>>(b));
        else return a * b;
    }
};

static_assert(combines<product, float> && commutes<product>);

}  // namespace ddl
