// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/schedule.hpp>

namespace ddl {

/// Recursive halving and doubling: for any number of ranks, without folding any of them away.
///
/// In each round of the first half a rank passes the far half of the chunks that it still works on to the rank that is
/// as far away, and combines what comes from as far away. `skip(k)` is how many chunks are left before round `k`:
/// `p`, then half of it rounded up, ... down to one. The second half runs the same rounds backwards.
///
/// A power of two leaves pairs that exchange halves: what a rank passes is one piece, and it waits for one peer. Other
/// numbers go round a circulant graph: a rank passes to the one ahead, and hears from the one as far behind.
///
/// Cost: `2 ceil(log2 p)` steps and `2n(p-1)/p` bytes sent a rank, both bounds met, for every `p`.
/// Order: rotates the operands, so `Op` must commute.
/// Source: of the pairs, Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005; of other numbers,
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

static_assert(schedule<recursive_halving> && has_halves<recursive_halving>);

}  // namespace ddl
