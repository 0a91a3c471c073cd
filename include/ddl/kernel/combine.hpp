// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ddl::kernel {

/// The part of a loop that one thread of a group does: elements `first`, `first + step`, ...
struct share {
    std::size_t first = 0;
    std::size_t step = 1;
};

/// On which side of the op an arrived operand stands.
enum class side : bool { left, right };

/// Elements that a host loop takes at a time: a count known to the compiler is what `-O2` vectorises.
inline constexpr std::size_t block = 64;

/// Folds `count` arrived elements into `ours`. Every thread calls it with its own `mine`; none waits. Reads 2, writes 1
/// element each. The two ranges do not overlap.
template <side Side, class Op, class Element>
constexpr void combine(share mine, const Element* __restrict arrived, Element* __restrict ours, std::size_t count,
                       const Op& op) {
    for (std::size_t i = mine.first; i < count; i += mine.step)
        ours[i] = Side == side::left ? op(arrived[i], ours[i]) : op(ours[i], arrived[i]);
}

/// The same on a host thread that does it all.
template <side Side, class Op, class Element>
constexpr void combine(const Element* __restrict arrived, Element* __restrict ours, std::size_t count, const Op& op) {
    std::size_t i = 0;
    for (; i + block <= count; i += block) combine<Side>(share{}, arrived + i, ours + i, block, op);
    combine<Side>(share{}, arrived + i, ours + i, count - i, op);
}

}  // namespace ddl::kernel
