// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>
#include <ddl/op/ordered.hpp>

namespace ddl {

/// The larger of two values by `<`. A NaN wins, whichever side holds it. Of two zeros of `float`, `double` and narrower types the
/// positive one is the larger; of other types zeros are equal, and either may be the result. The narrow types of ours are
/// compared by their codes.
struct maximum {
    static constexpr bool commutative = true;
    static constexpr const char* name = "maximum";

    template <class Element>
    using accumulator = chosen_from<Element>;

    template <ordered Type>
    constexpr Type operator()(const Type& a, const Type& b) const noexcept {
        const Type larger = b < a || unordered(a) ? a : b;  // if `b` is the NaN, no comparison holds
        if constexpr (signed_zero<Type>) return a == b ? positive_of_equals(a, b) : larger;
        else return larger;
    }
    template <coded Type>
    constexpr Type operator()(const Type& a, const Type& b) const noexcept {
        return extreme<extremum::largest>(a, b);
    }
};

static_assert(combines<maximum, float> && commutes<maximum>);

}  // namespace ddl
