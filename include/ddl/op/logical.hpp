// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>

namespace ddl {

/// Is true or false: `bool`, or an integer of which every value but 0 is true. The result is 0 or 1 of the same type.
/// The ops use `&` and `|`: the short circuit of `&&` and `||` is a branch, and g++ does not vectorise it for `bool`.
template <class Type>
concept truth = integer<Type>;

/// Whether both are true.
struct logical_and {
    static constexpr bool commutative = true;
    static constexpr const char* name = "logical_and";

    template <truth Type>
    constexpr Type operator()(Type a, Type b) const noexcept {
        return static_cast<Type>((a != 0) & (b != 0));
    }
};

/// Whether one is true.
struct logical_or {
    static constexpr bool commutative = true;
    static constexpr const char* name = "logical_or";

    template <truth Type>
    constexpr Type operator()(Type a, Type b) const noexcept {
        return static_cast<Type>((a != 0) | (b != 0));
    }
};

/// Whether exactly one is true.
struct logical_xor {
    static constexpr bool commutative = true;
    static constexpr const char* name = "logical_xor";

    template <truth Type>
    constexpr Type operator()(Type a, Type b) const noexcept {
        return static_cast<Type>((a != 0) != (b != 0));
    }
};

static_assert(combines<logical_and, int> && combines<logical_or, int> && combines<logical_xor, int>);

}  // namespace ddl
