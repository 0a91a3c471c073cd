// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/ops.hpp>

#include <concepts>
#include <type_traits>

namespace ddl {

/// The operators of an element that our ops are written with.
template <class Op, class Type>
__device__ void name_operators(const Op&, const Type& a, const Type& b) {
    if constexpr (std::is_same_v<Op, sum> || std::is_same_v<Op, average>) static_cast<void>(static_cast<Type>(a + b));
    if constexpr (std::is_same_v<Op, product>) static_cast<void>(static_cast<Type>(a * b));
    if constexpr (std::is_same_v<Op, average>) {
        if constexpr (requires { static_cast<Type>(a / 1.0); }) static_cast<void>(static_cast<Type>(a / 1.0));
        else if constexpr (requires { static_cast<Type>(a / 1); }) static_cast<void>(static_cast<Type>(a / 1));
        else static_cast<void>(static_cast<Type>(a / typename Type::value_type(1)));
    }
    if constexpr (std::is_same_v<Op, minimum> || std::is_same_v<Op, maximum>) {
        static_cast<void>(static_cast<bool>(a < b));
        if constexpr (requires { static_cast<bool>(a != b); }) static_cast<void>(static_cast<bool>(a != b));
    }
    if constexpr (std::is_same_v<Op, minimum_location>) name_operators(minimum{}, a.value, b.value);
    if constexpr (std::is_same_v<Op, maximum_location>) name_operators(maximum{}, a.value, b.value);
}

/// Calls all that a fold does of a user's op and element.
template <class Accumulator, class Op, class Element>
__device__ void name_calls(const Op& op, const Element& element, int ranks) {
    if constexpr (requires {
                      { commutative(op.op) } -> std::same_as<Op>;
                  }) {  // which would hide it again
        name_calls<Accumulator>(op.op, element, ranks);
    } else {
        Accumulator all = static_cast<Accumulator>(element);
        all = op(all, all);
        name_operators(op, all, all);
        if constexpr (requires { op.finish(all, ranks); })
            static_cast<void>(static_cast<Element>(op.finish(all, ranks)));
        else static_cast<void>(static_cast<Element>(all));
    }
}

/// Refuses a body that folds by functions of the host alone. Nothing is called: but where a constexpr function, as bodies are,
/// calls one of the host, nvcc leaves the call out of the kernel without a word, and in one of the device alone that is an error.
template <class Body>
__device__ void require_device_functions() {
    if constexpr (requires { typename Body::op_type; })
        static_cast<void>(&name_calls<accumulator_t<typename Body::op_type, typename Body::element_type>,
                                      typename Body::op_type, typename Body::element_type>);
}

}  // namespace ddl
