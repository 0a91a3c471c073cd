// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>
#include <ddl/op/ordered.hpp>

namespace ddl {

/// The smaller of two values by `<`. A NaN wins, whichever side holds it. Of two zeros of `float`, `double` and narrower types the
/// negative one is the smaller; of other types zeros are equal, and either may be the result. The narrow types of ours are
/// compared by their codes.
struct minimum {
    static constexpr bool commutative = true;
    static constexpr const char* name = "minimum";

    template <class Element>
    using accumulator = chosen_from<Element>;

    template <ordered Type>
    constexpr Type operator()(const Type& a, const Type& b) const noexcept {
        const Type smaller = a < b || unordered(a) ? a : b;  // if `b` is the NaN, no comparison holds
        if constexpr (signed_zero<Type>) return a == b ? negative_of_equals(a, b) : smaller;
        else return smaller;
    }
    template <coded Type>
    constexpr Type operator()(const Type& a, const Type& b) const noexcept {
        return extreme<extremum::smallest>(a, b);
    }
};

static_assert(combines<minimum, float> && commutes<minimum>);

}  // namespace ddl
