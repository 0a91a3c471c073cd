// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/schedule.hpp>

namespace ddl {

/// The binomial tree: what is known spreads from the root to twice as many ranks in every round.
///
/// Ranks are counted from the root on. The allreduce is the reduction to rank 0 and the broadcast from there. The same
/// tree carries broadcast, reduce, gather and scatter; in the latter two an edge carries the blocks of a whole subtree.
///
/// Cost: `ceil(log2 p)` steps each way; `n` bytes a step where all is sent, `n (p-1)/p` through the root for scatter
/// and gather. For short messages, and for rooted collectives.
/// Order: the allreduce keeps rank order; a reduction to a root other than 0 rotates the operands.
/// Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005, sections 4.2 to 4.4.
struct tree {
    static constexpr const char* name = "tree";
    static constexpr int chunks(int) noexcept { return 1; }
    static constexpr int rounds(int size) noexcept { return 2 * ceil_log2(size); }
    static constexpr transfer_list<1> round(int rank, int size, int k) noexcept {
        const int half = ceil_log2(size);
        return k < half ? edge(rank, size, k, action::receive_reduce)
                        : edge(rank, size, 2 * half - 1 - k, action::send);
    }

    /// All edges of the tree, one level a round: from the leaves to the root, or (`outward`) from the root to the leaves.
    struct whole {
        int ranks;
        int root;
        bool outward;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return 1; }
        constexpr int rounds() const noexcept { return ceil_log2(ranks); }
        constexpr int width(int rank, int round) const noexcept { return list(rank, round).size(); }
        constexpr transfer at(int rank, int round, int index) const noexcept {
            transfer t = list(rank, round)[index];
            t.peer = (t.peer + root) % ranks;
            return t;
        }

    private:
        constexpr transfer_list<1> list(int rank, int round) const noexcept {
            const int place = wrap(rank - root, ranks);
            return outward ? edge(place, ranks, rounds() - 1 - round, action::send)
                           : edge(place, ranks, round, action::receive_reduce);
        }
    };
    static constexpr whole broadcast(int size, int root) noexcept { return {size, root, true}; }
    static constexpr whole reduce(int size, int root) noexcept { return {size, root, false}; }

    /// The same edges over `size` chunks: each carries the blocks of all ranks below it.
    struct blocks {
        int ranks;
        int root;
        bool outward;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return ranks; }
        constexpr int rounds() const noexcept { return ceil_log2(ranks); }
        constexpr int width(int rank, int round) const noexcept { return list(rank, round).size(); }
        constexpr transfer at(int rank, int round, int index) const noexcept { return list(rank, round)[index]; }

    private:
        constexpr transfer_list<2> list(int rank, int round) const noexcept {
            const int level = outward ? rounds() - 1 - round : round;
            const int place = wrap(rank - root, ranks);
            const auto inner = edge(place, ranks, level, outward ? action::send : action::receive);
            transfer_list<2> transfers;
            if (inner.size() == 0) return transfers;
            const int lower = place > inner[0].peer ? place : inner[0].peer;  // the root of the subtree that is moved
            const int below = ranks - lower < (1 << level) ? ranks - lower : 1 << level;
            transfers.push_circular(inner[0].what, (inner[0].peer + root) % ranks, (lower + root) % ranks, below,
                                    ranks);
            return transfers;
        }
    };
    static constexpr blocks scatter(int size, int root) noexcept { return {size, root, true}; }
    static constexpr blocks gather(int size, int root) noexcept { return {size, root, false}; }

private:
    /// The edge of `place` at `level`, if it has one; `upper` is what its end nearer to the root does.
    static constexpr transfer_list<1> edge(int place, int size, int level, action upper) noexcept {
        const int distance = 1 << level;
        if (place % distance != 0) return {};
        if (place % (2 * distance) != 0)
            return {{{upper == action::send ? action::receive : action::send, place - distance, 0}}, 1};
        if (place + distance >= size) return {};
        return {{{upper, place + distance, 0}}, 1};
    }
};

template <>
inline constexpr bool of_the_library<tree> = true;
static_assert(schedule<tree> && !has_halves<tree>);

}  // namespace ddl
