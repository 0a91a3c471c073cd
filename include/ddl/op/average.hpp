// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>
#include <ddl/op/sum.hpp>

#include <type_traits>

namespace ddl {

/// Has a mean: `a + b`, and `a / n` for an `n` that is a `double`, an `int` or, as of `std::complex`, a `value_type`.
template <class Type>
concept divisible_sum = folds<sum, Type> && (
                                                requires(const Type a) { static_cast<Type>(a / 1.0); } ||
                                                requires(const Type a) { static_cast<Type>(a / 1); } ||
                                                requires(const Type a) { a / typename Type::value_type(1); });

/// The sum, divided by the number of ranks once all have been added.
///
/// The quotient of integers is rounded toward zero. Those of up to 32 bits are accumulated in `double`, which holds their sums over
/// 2^21 ranks, tells each quotient from the next integer, and is divided many at a time; longer ones as they are, where they wrap.
struct average {
    static constexpr bool commutative = true;
    static constexpr const char* name = "average";

    template <class Element>
    struct accumulated_in {
        using type = wide_t<Element>;
    };
    template <class Element>
        requires(integer<Element> && !std::is_same_v<Element, bool>)
    struct accumulated_in<Element> {
        using type = std::conditional_t<sizeof(Element) <= 4, double, Element>;
    };
    template <class Element>
    using accumulator = typename accumulated_in<Element>::type;

    template <divisible_sum Type>
    constexpr Type operator()(const Type& a, const Type& b) const noexcept {
        return sum{}(a, b);
    }

    template <divisible_sum Type>
    constexpr Type finish(const Type& total, int ranks) const noexcept {
        if constexpr (integer<Type> || std::is_floating_point_v<Type>) {
            using wide = accumulator<Type>;  // `ranks` may be more than a short type holds
            return static_cast<Type>(static_cast<wide>(total) / static_cast<wide>(ranks));
        } else if constexpr (requires { static_cast<Type>(total / 1.0); }) {
            return static_cast<Type>(total / static_cast<double>(ranks));
        } else if constexpr (requires { static_cast<Type>(total / 1); }) {
            return static_cast<Type>(total / ranks);
        } else {
            return total / static_cast<typename Type::value_type>(ranks);
        }
    }
};

static_assert(combines<average, float> && finishes<average, float> && commutes<average>);

}  // namespace ddl
