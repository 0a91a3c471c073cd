// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/schedule.hpp>

namespace ddl {

/// Everybody speaks to everybody at once: one round for the reduce-scatter and one for the all-gather.
///
/// Rank `r` gathers the contributions to chunk `r` from all others, folds them, and hands the result to all. The
/// operands arrive as from `r - 1` down to `0`, then from `r + 1` up, so what is combined is always adjacent.
///
/// Cost: 2 steps; `2n(p-1)/p` bytes sent a rank, which is the bound; `2(p-1)` messages a rank. For shared memory,
/// where a message is a load, and for few ranks.
/// Order: keeps rank order.
struct direct {
    static constexpr const char* name = "direct";
    static constexpr int chunks(int size) noexcept { return size; }
    static constexpr int rounds(int size) noexcept { return size > 1 ? 2 : 0; }

    /// The `index`-th other rank, as seen from `rank`: downwards to 0, then upwards.
    static constexpr int other(int rank, int index) noexcept { return index < rank ? rank - 1 - index : index + 1; }

    /// All transfers of a rank in a round, computed when asked for: first the sends, then the receives.
    struct all_pairs {
        int rank;
        int ranks;
        bool gathers;
        constexpr int size() const noexcept { return 2 * (ranks - 1); }
        constexpr transfer operator[](int index) const noexcept {
            const bool sends = index < ranks - 1;
            const int peer = other(rank, sends ? index : index - (ranks - 1));
            if (sends) return {action::send, peer, gathers ? rank : peer};
            return {gathers ? action::receive : action::receive_reduce, peer, gathers ? peer : rank};
        }
    };
    static constexpr all_pairs round(int rank, int size, int k) noexcept { return {rank, size, k == 1}; }

    /// One round in which `root` speaks to each other rank: of one chunk all get the same, of `size` chunks each its own.
    /// `what` is what the far end of the messages does; the root sends, unless `inward`, when it receives.
    struct star {
        int ranks;
        int root;
        int parts;
        action arrival;
        bool inward;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return parts; }
        constexpr int rounds() const noexcept { return ranks > 1 ? 1 : 0; }
        constexpr int width(int rank, int) const noexcept { return rank == root ? ranks - 1 : 1; }
        constexpr transfer at(int rank, int, int index) const noexcept {
            const int leaf = rank == root ? other(root, index) : rank;
            const int peer = rank == root ? leaf : root;
            return {(rank == root) == inward ? arrival : action::send, peer, parts == 1 ? 0 : leaf};
        }
    };
    static constexpr star broadcast(int size, int root) noexcept { return {size, root, 1, action::receive, false}; }
    static constexpr star reduce(int size, int root) noexcept { return {size, root, 1, action::receive_reduce, true}; }
    static constexpr star scatter(int size, int root) noexcept { return {size, root, size, action::receive, false}; }
    static constexpr star gather(int size, int root) noexcept { return {size, root, size, action::receive, true}; }

    /// All-to-all in one round. Cost: 1 step, `n(p-1)/p` bytes and `p - 1` messages a rank.
    struct exchange {
        int ranks;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return ranks * ranks; }
        constexpr int rounds() const noexcept { return ranks > 1 ? 1 : 0; }
        constexpr int width(int, int) const noexcept { return 2 * (ranks - 1); }
        constexpr transfer at(int rank, int, int index) const noexcept {
            // each rank begins with its right neighbour, so that not all of them press upon rank 0
            const int to = wrap(rank + 1 + index, ranks);
            if (index < ranks - 1) return {action::send, to, rank * ranks + to};
            const int from = wrap(rank - 1 - (index - (ranks - 1)), ranks);
            return {action::receive, from, from * ranks + rank};
        }
    };
    static constexpr exchange all_to_all(int size) noexcept { return {size}; }
};

template <>
inline constexpr bool of_the_library<direct> = true;
static_assert(schedule<direct> && has_halves<direct>);

}  // namespace ddl
