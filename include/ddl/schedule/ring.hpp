// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/schedule.hpp>

namespace ddl {

/// The ring: every rank speaks to its two neighbours only, and every link is busy in every round.
///
/// In round `k` rank `r` passes chunk `r - 1 - k` (modulo `size`) to the right. For the first `size - 1` rounds an
/// arriving chunk is combined with ours (reduce-scatter: rank `r` then holds chunk `r` complete), in the rest it
/// replaces ours (all-gather). One formula serves both halves; they differ in what becomes of an arrival.
///
/// Cost: `2(p-1)` steps; `2n(p-1)/p` bytes sent a rank, which is the bound. For long messages and few ranks.
/// Order: chunk `c` is folded from rank `c + 1` round to rank `c`, a rotation, so `Op` must commute.
/// Source: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009.
struct ring {
    static constexpr const char* name = "ring";
    static constexpr int chunks(int size) noexcept { return size; }
    static constexpr int rounds(int size) noexcept { return 2 * (size - 1); }

    /// What `rank` does in round `k`. Requires `0 <= rank < size` and `0 <= k < rounds(size)`.
    static constexpr transfer_list<2> round(int rank, int size, int k) noexcept {
        const int right = (rank + 1) % size;
        const int left = (rank + size - 1) % size;
        const int outgoing = (left + 2 * size - k) % size;  // `k` is below `2 * size`: never negative
        const int incoming = (outgoing + size - 1) % size;  // what `left` sends in this round
        const action arrival = k < size - 1 ? action::receive_reduce : action::receive;
        return {{{action::send, right, outgoing}, {arrival, left, incoming}}, 2};
    }

    /// All-to-all in pairs: in round `k` rank `r` sends to `r + k + 1` and receives from `r - k - 1`.
    /// Cost: `p - 1` steps, `n(p-1)/p` bytes a rank; no rank ever receives from two at once.
    struct pairwise {
        int ranks;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return ranks * ranks; }
        constexpr int rounds() const noexcept { return ranks - 1; }
        constexpr int width(int, int) const noexcept { return 2; }
        constexpr transfer at(int rank, int round, int index) const noexcept {
            const int to = wrap(rank + round + 1, ranks);
            const int from = wrap(rank - round - 1, ranks);
            return index == 0 ? transfer{action::send, to, rank * ranks + to}
                              : transfer{action::receive, from, from * ranks + rank};
        }
    };
    static constexpr pairwise all_to_all(int size) noexcept { return {size}; }
};

template <>
inline constexpr bool of_the_library<ring> = true;
static_assert(schedule<ring> && has_halves<ring>);

}  // namespace ddl
