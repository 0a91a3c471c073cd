// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>

#include <cstddef>
#include <cstdint>

/// What `rank` brings at `index` in one call: a whole number from -128 to 127, which every element type holds.
///
/// So all intermediate sums are exact, and the one rounding at the end gives the same value in every order of operands.
/// Calls differ, so that a result left over from the call before is wrong.
constexpr std::int32_t contribution(int rank, std::size_t index, std::uint32_t call) noexcept {
    const std::uint32_t mixed = static_cast<std::uint32_t>(index) * 2654435761U +
                                static_cast<std::uint32_t>(rank) * 1640531527U + call * 2246822519U;
    return static_cast<std::int32_t>(mixed >> 24) - 128;
}

/// The `Element` nearest to a value of the oracle.
template <class Element>
constexpr Element nearest(double value) noexcept {
    return static_cast<Element>(static_cast<ddl::wide_t<Element>>(value));
}

template <class Element>
void write_contribution(Element* data, std::size_t count, int rank, std::uint32_t call) noexcept {
    for (std::size_t i = 0; i < count; ++i) data[i] = nearest<Element>(contribution(rank, i, call));
}

/// How many elements of a result differ from the oracle: the contributions folded one after another in `double`.
template <class Op, class Element>
std::size_t count_wrong(const Element* result, std::size_t count, int ranks, std::uint32_t call) noexcept {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
        double expected = contribution(0, i, call);
        for (int rank = 1; rank < ranks; ++rank)
            expected = Op{}(expected, static_cast<double>(contribution(rank, i, call)));
        wrong += result[i] == nearest<Element>(expected) ? 0U : 1U;
    }
    return wrong;
}
