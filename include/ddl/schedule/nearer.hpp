// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ddl {

/// Which ranks lie closer to each other, on a core or a host: neighbours, as where one host is filled after the other, or those
/// that are half of all ranks apart, as where ranks are dealt to hosts in turn.
enum class nearer : bool { neighbours, halves_apart };

/// How far apart the ranks of a power of two are that meet in `round`, where those that lie closer meet first: 1, 2, 4, ..., or the
/// same from half of them on.
constexpr int distance_of_pairs(int size, int round, nearer close) noexcept {
    return close == nearer::neighbours ? 1 << round : size >> (round + 1);
}

}  // namespace ddl
