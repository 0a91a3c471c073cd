// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/located.hpp>
#include <ddl/op/op.hpp>
#include <ddl/op/ordered.hpp>

namespace ddl {

/// The smallest value and where it was found. Equal values give the lowest index, so every order of folding finds the
/// same one; a NaN wins, and of two NaNs the one at the lower index.
struct minimum_location {
    static constexpr bool commutative = true;
    static constexpr const char* name = "minimum_location";

    template <ordered Type>
    constexpr located<Type> operator()(const located<Type>& a, const located<Type>& b) const noexcept {
        const bool first_wins = unordered(a.value) || a.value < b.value;
        const bool second_wins = unordered(b.value) || b.value < a.value;
        const bool first = first_wins == second_wins ? a.index < b.index : first_wins;
        return first ? a : b;
    }
};

/// The largest value and where it was found. Equal values give the lowest index, so every order of folding finds the
/// same one; a NaN wins, and of two NaNs the one at the lower index.
struct maximum_location {
    static constexpr bool commutative = true;
    static constexpr const char* name = "maximum_location";

    template <ordered Type>
    constexpr located<Type> operator()(const located<Type>& a, const located<Type>& b) const noexcept {
        const bool first_wins = unordered(a.value) || b.value < a.value;
        const bool second_wins = unordered(b.value) || a.value < b.value;
        const bool first = first_wins == second_wins ? a.index < b.index : first_wins;
        return first ? a : b;
    }
};

static_assert(combines<minimum_location, located<float>> && combines<maximum_location, located<int>>);

}  // namespace ddl
