// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/map.hpp>

#include <cstddef>
#include <type_traits>

namespace ddl::kernel {

/// The part of a loop that one thread of a group does: elements `first`, `first + step`, ...
struct share {
    std::size_t first = 0;
    std::size_t step = 1;
};

/// On which side of the op an arrived operand stands.
enum class side : bool { left, right };

/// Folds `count` arrived elements into `ours`. Every thread calls it with its own `mine`; none waits. Reads 2, writes 1
/// element each. The two ranges do not overlap.
template <side Side, class Op, class Arrived, class Element>
constexpr void combine(share mine, const Arrived* __restrict arrived, Element* __restrict ours, std::size_t count,
                       const Op& op) {
    for (std::size_t i = mine.first; i < count; i += mine.step)
        ours[i] = Side == side::left ? op(static_cast<Element>(arrived[i]), ours[i])
                                     : op(ours[i], static_cast<Element>(arrived[i]));
}

/// What a loop calls for two values of which one may have to be widened first.
template <class Op, class Element>
struct widening {
    const Op& op;
    template <class Left, class Right>
    Element operator()(const Left& l, const Right& r) const {
        return op(static_cast<Element>(l), static_cast<Element>(r));
    }
};

/// The same on a host thread that does it all. `Arrived` may be a type that `Element` accumulates.
template <side Side, class Op, class Arrived, class Element>
constexpr void combine(const Arrived* __restrict arrived, Element* __restrict ours, std::size_t count, const Op& op) {
    if constexpr (varies_by_loop<Op, Element, Arrived>)
        if (!std::is_constant_evaluated()) {
            using narrow = packed_as<Arrived, Element>;
            const auto* const before = static_cast<const Element*>(ours);
            const widening<Op, Element> value{op};
            if constexpr (Side == side::left) return map_by_tiles<narrow>(ours, count, value, arrived, before);
            else return map_by_tiles<narrow>(ours, count, value, before, arrived);
        }
    if constexpr (packs<Arrived, Element>)
        if (!std::is_constant_evaluated()) {
            const auto fold_in = [&op](float own, float value) {
                return Side == side::left ? op(value, own) : op(own, value);
            };
            const std::size_t packed = count / packed_block<Arrived> * packed_block<Arrived>;
            widest<may_fuse<Op, Element, Arrived>>([=]<vectors Which>() {
                map_packed<Arrived, lie::in_order, Which>(ours, packed, fold_in, ours, arrived);
            });
            return combine<Side>(share{}, arrived + packed, ours + packed, count - packed, op);
        }
    const std::size_t whole = count / block * block;
    const auto blocks = [arrived, ours, whole, &op]<vectors>() {
        // counted down: g++ 12 spends two instructions less a block
        for (std::size_t left = whole / block, i = 0; left > 0; --left, i += block)
            combine<Side>(share{}, arrived + i, ours + i, block, op);
    };
    if (std::is_constant_evaluated() || whole < worth_a_choice) blocks.template operator()<vectors::compiled>();
    else widest<may_fuse<Op, Element, Arrived>>(blocks);
    combine<Side>(share{}, arrived + whole, ours + whole, count - whole, op);
}

}  // namespace ddl::kernel
