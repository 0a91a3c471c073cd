// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace ddl::kernel {

/// Above as many steps a loop stays a loop.
inline constexpr std::size_t longest_unrolled = 32;

/// Calls `act(0)` to `act(Count - 1)`, each with a constant, so that arrays indexed by it stay in registers. Longer loops
/// call it with plain numbers.
template <std::size_t Count, class Act>
constexpr void unrolled(const Act& act) {
    if constexpr (Count <= longest_unrolled)
        [&act]<std::size_t... Step>(std::index_sequence<Step...>) {
            (act(std::integral_constant<std::size_t, Step>{}), ...);
        }(std::make_index_sequence<Count>{});
    else
        for (std::size_t step = 0; step < Count; ++step) act(step);
}

}  // namespace ddl::kernel
