// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>
#include <ddl/named.hpp>
#include <ddl/op/fingerprint.hpp>  // by which ranks compare what op_name prints

#include <concepts>
#include <type_traits>

namespace ddl {

/// `Op` turns two values of `Type` into one, here and now, without an accumulator.
template <class Op, class Type>
concept folds = requires(const Op op, const Type left, const Type right) {
    { op(left, right) } -> std::convertible_to<Type>;
};

/// Operands may change places. An op that does not say so is taken to depend on their order.
template <class Op>
concept commutes = requires { requires std::bool_constant<Op::commutative>::value; };

/// `Op` says whether it commutes, be it in a way that cannot be read: not `static`, not `constexpr`, a function, or no `bool`.
template <class Op>
concept names_commutative = requires { Op::commutative; } || requires { &Op::commutative; };
template <class Op>
concept says_commutative = requires { typename std::bool_constant<Op::commutative>; };

/// `Op` says itself what values of `Element` are accumulated in, as `average` does of integers.
template <class Op, class Element>
concept names_accumulator = requires { typename Op::template accumulator<Element>; };

/// What values of `Element` are accumulated in: what the op says of it, or of any, else the wide type, else the element itself.
template <class Op, class Element>
consteval auto chosen_accumulator() {
    if constexpr (names_accumulator<Op, Element>)
        return std::type_identity<typename Op::template accumulator<Element>>{};
    else if constexpr (requires { typename Op::accumulator; }) return std::type_identity<typename Op::accumulator>{};
    else if constexpr (folds<Op, wide_t<Element>>) return std::type_identity<wide_t<Element>>{};
    else return std::type_identity<Element>{};
}
template <class Op, class Element>
using accumulator_t = typename decltype(chosen_accumulator<Op, Element>())::type;

/// `Op` has a last step, which is given what all ranks accumulated and how many they were: `average` divides.
template <class Op, class Element>
concept finishes = requires(const Op op, const accumulator_t<Op, Element> accumulated, int ranks) {
    static_cast<Element>(op.finish(accumulated, ranks));
};

/// `Op` has a `finish`, be it one that cannot be called: not `const`, of other parameters, or of a result that is no element.
/// Not seen are several, or a template, of which none takes what is accumulated.
template <class Op, class Element>
inline constexpr bool names_finish =
    requires { requires std::is_member_function_pointer_v<decltype(&Op::finish)>; } || requires {
        requires std::is_function_v<std::remove_pointer_t<decltype(&Op::finish)>>;
    } || requires(Op& op, accumulator_t<Op, Element>& accumulated, int ranks) { op.finish(accumulated, ranks); };

/// `Op` turns two values of `Element` into one: true of `sum` and `float`, false of `bit_and` and `float`.
template <class Op, class Element>
concept combines = folds<Op, accumulator_t<Op, Element>> &&
                   requires(const Element value, const accumulator_t<Op, Element> accumulated) {
                       static_cast<accumulator_t<Op, Element>>(value);
                       static_cast<Element>(accumulated);
                   };

/// The last step of `op`, nothing where it has none. Call it once, on what all `ranks` accumulated.
template <class Op, class Accumulator>
constexpr auto finish(const Op& op, const Accumulator& accumulated, int ranks) {
    if constexpr (requires { op.finish(accumulated, ranks); }) return op.finish(accumulated, ranks);
    else return accumulated;
}

/// What errors and `explain` call an `Op`: its `static constexpr const char* name`, if it has one.
template <class Op>
constexpr const char* op_name() noexcept {
    if constexpr (named<Op>) return Op::name;
    else return "user's op";
}

/// The user's `Op`, marked as one whose operands may change places. Made by `commutative(op)`.
template <class Op>
struct commutative_op {
    static constexpr bool commutative = true;
    static constexpr const char* name = op_name<Op>();
    template <class Element>
    using accumulator = accumulator_t<Op, Element>;

    [[no_unique_address]] Op op;

    template <class Type>
        requires folds<Op, Type>
    constexpr Type operator()(const Type& left, const Type& right) const {
        return op(left, right);
    }

    template <class Accumulator>
        requires requires(const Op by, const Accumulator accumulated, int ranks) { by.finish(accumulated, ranks); }
    constexpr auto finish(const Accumulator& accumulated, int ranks) const {
        return op.finish(accumulated, ranks);
    }
};

template <class Op, class Element>
inline constexpr bool names_finish<commutative_op<Op>, Element> = names_finish<Op, Element>;
template <class Op>
inline constexpr bool misnamed<commutative_op<Op>> = misnamed<Op>;

/// `op`, for which you vouch that `op(a, b)` equals `op(b, a)`: every schedule is then open to it.
template <class Op>
constexpr commutative_op<Op> commutative(Op op) {
    return {op};
}

}  // namespace ddl
