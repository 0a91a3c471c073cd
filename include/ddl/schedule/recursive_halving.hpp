// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/nearer.hpp>
#include <ddl/schedule/schedule.hpp>

namespace ddl {

/// What a rank of a power of two still works on before `round`, where pairs as far apart as `distance_of_pairs` halve it.
constexpr chunk_range left_by_halving(int rank, int size, int round, nearer close = nearer::neighbours) noexcept {
    if (close == nearer::halves_apart) {
        const int left = size >> round;
        return {rank & -left, left};
    }
    chunk_range left{0, size};
    for (int k = 0; k < round; ++k) {
        left.count /= 2;
        if ((rank >> k & 1) != 0) left.first += left.count;
    }
    return left;
}

/// Recursive halving and doubling: for any number of ranks, without folding any of them away.
///
/// In each round of the first half a rank passes the far half of the chunks that it still works on to the rank that is
/// as far away, and combines what comes from as far away. `skip(k)` is how many chunks are left before round `k`:
/// `p`, then half of it rounded up, ... down to one. The second half runs the same rounds backwards.
///
/// A power of two leaves pairs that exchange halves: what a rank passes is one piece, and it waits for one peer. Other
/// numbers go round a circulant graph: a rank passes to the one ahead, and hears from the one as far behind.
///
/// An allreduce may leave any rank with any chunk in between, so there the pairs of a power of two begin with those that lie
/// closest, which exchange the most: neighbours, unless told otherwise.
///
/// Cost: `2 ceil(log2 p)` steps and `2n(p-1)/p` bytes sent a rank, both bounds met, for every `p`.
/// Order: rotates the operands, so `Op` must commute.
/// Source: of the pairs, Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005, of an allreduce section
/// 4.5, "recursive vector halving, distance doubling"; of other numbers,
/// Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", arXiv 2410.14234.
struct recursive_halving {
    static constexpr const char* name = "recursive_halving";
    static constexpr int chunks(int size) noexcept { return size; }
    static constexpr int rounds(int size) noexcept { return 2 * ceil_log2(size); }

    static constexpr transfer_list<4> round(int rank, int size, int k) noexcept {
        const int half = ceil_log2(size);
        if (k < half) return halving(rank, size, k);
        transfer_list<4> transfers = halving(rank, size, 2 * half - 1 - k);
        for (int i = 0; i < transfers.length; ++i) transfers.items[i] = mirrored(transfers.items[i]);
        return transfers;
    }

    /// The program of an allreduce.
    struct nearest_first {
        int ranks;
        nearer close;

        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return recursive_halving::chunks(ranks); }
        constexpr int rounds() const noexcept { return recursive_halving::rounds(ranks); }
        constexpr int width(int rank, int k) const noexcept {
            return neighbours_pair() ? 2 : round(rank, ranks, k).size();
        }
        constexpr transfer at(int rank, int k, int index) const noexcept {
            if (!neighbours_pair()) return round(rank, ranks, k)[index];
            if (const int half = ceil_log2(ranks); k >= half) return mirrored(at(rank, 2 * half - 1 - k, 1 - index));
            const int peer = rank ^ 1 << k;
            const bool sends = index == 0;
            const chunk_range moved = left_by_halving(sends ? peer : rank, ranks, k + 1);
            return {sends ? action::send : action::receive_reduce, peer, moved.first, moved.count};
        }

    private:
        /// Else the rounds themselves begin with the closest, or rank and peer are no pair.
        constexpr bool neighbours_pair() const noexcept {
            return close == nearer::neighbours && (ranks & (ranks - 1)) == 0;
        }
    };
    static constexpr nearest_first allreduce(int size, nearer close = nearer::neighbours) noexcept {
        return {size, close};
    }

private:
    static constexpr int skip(int size, int k) noexcept {
        int left = size;
        for (; k > 0; --k) left = (left + 1) / 2;
        return left;
    }
    static constexpr transfer_list<4> halving(int rank, int size, int k) noexcept {
        const int distance = skip(size, k + 1);
        if ((size & (size - 1)) == 0) {
            const int peer = rank ^ distance;
            return {{{action::send, peer, peer & -distance, distance},
                     {action::receive_reduce, peer, rank & -distance, distance}},
                    2};
        }
        const int passed =
            skip(size, k) - distance;  // chunks that lie `distance` and more ahead of their owner's place
        const int ahead = wrap(rank + distance, size);
        transfer_list<4> transfers;
        transfers.push_circular(action::send, ahead, ahead, passed, size);
        transfers.push_circular(action::receive_reduce, wrap(rank - distance, size), rank, passed, size);
        return transfers;
    }
};

template <>
inline constexpr bool of_the_library<recursive_halving> = true;
static_assert(schedule<recursive_halving> && has_halves<recursive_halving>);

}  // namespace ddl
