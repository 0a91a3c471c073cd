// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// A straight line. Composing two of them is an op whose operands must not change places.
struct line {
    std::uint32_t slope;
    std::uint32_t shift;
    bool operator==(const line&) const = default;
};
struct compose {
    constexpr line operator()(const line& f, const line& g) const {
        return {f.slope * g.slope, f.slope * g.shift + f.shift};
    }
};

/// What `rank` brings at place `i`: any bits of integers, floating values between -1 and 1.
template <class Element>
Element brought(int rank, std::size_t i) {
    std::uint64_t mixed = (static_cast<std::uint64_t>(rank) + 1) * 0x9e37'79b9'7f4a'7c15U + i * 0xbf58'476d'1ce4'e5b9U;
    mixed = (mixed ^ (mixed >> 31)) * 0x94d0'49bb'1331'11ebU;
    mixed ^= mixed >> 29;
    if constexpr (std::is_integral_v<Element>) return static_cast<Element>(mixed);
    else if constexpr (std::is_same_v<Element, line>)
        return {static_cast<std::uint32_t>(mixed) | 1U, static_cast<std::uint32_t>(mixed >> 32)};
    else return static_cast<Element>(static_cast<float>(static_cast<std::int64_t>(mixed) >> 40) / 8'388'608.0F);
}
