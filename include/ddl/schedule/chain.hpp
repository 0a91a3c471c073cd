// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/schedule.hpp>

namespace ddl {

/// The pipeline: what the root has goes from rank to rank in `Pieces` pieces, each on its way while the one before it is a rank
/// further.
///
/// Ranks are counted from the root on. A reduction comes the same way back, and is combined on it. The allreduce is the
/// reduction to rank 0 and the broadcast from there.
///
/// Cost: `Pieces + p - 2` steps each way, of `n / Pieces` bytes: the longer the message and the fewer the ranks, the nearer to the
/// bound `n`. For rooted collectives of long messages.
/// Order: the allreduce keeps rank order; a reduction to a root other than 0 rotates the operands.
/// Source: van de Geijn and Watts, Concurrency: Pract. Exper. 9(4), 1997 (SUMMA), whose broadcasts and sums are pipelined so.
template <int Pieces>
struct chain {
    static constexpr const char* name = "chain";

    /// All steps from the root, or (`inward`) to it.
    struct way {
        int ranks;
        int root;
        bool inward;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return Pieces; }
        constexpr int rounds() const noexcept { return ranks > 1 ? Pieces + ranks - 2 : 0; }
        constexpr int width(int rank, int round) const noexcept { return list(rank, round).size(); }
        constexpr transfer at(int rank, int round, int index) const noexcept { return list(rank, round)[index]; }

    private:
        constexpr transfer_list<2> list(int rank, int round) const noexcept {
            const int step = inward ? -1 : 1;
            const int passed = wrap((rank - (inward ? root - 1 : root)) * step, ranks);  // ranks before this one
            const int outgoing = round - passed;
            const int incoming = outgoing + 1;
            transfer_list<2> transfers;
            if (passed < ranks - 1 && 0 <= outgoing && outgoing < Pieces)
                transfers.push({action::send, wrap(rank + step, ranks), outgoing});
            if (passed > 0 && 0 <= incoming && incoming < Pieces)
                transfers.push({inward ? action::receive_reduce : action::receive, wrap(rank - step, ranks), incoming});
            return transfers;
        }
    };
    static constexpr way broadcast(int size, int root) noexcept { return {size, root, false}; }
    static constexpr way reduce(int size, int root) noexcept { return {size, root, true}; }
    static constexpr auto allreduce(int size) noexcept { return then(reduce(size, 0), broadcast(size, 0)); }
};

template <int Pieces>
struct arguments_of<chain<Pieces>> {
    static constexpr bool fit = Pieces >= 1;
    static constexpr void complain() noexcept {
        static_assert(fit, "ddl: chain needs at least one piece; write ddl::chain<16>");
    }
};

template <int Pieces>
inline constexpr bool of_the_library<chain<Pieces>> = true;
static_assert(schedule<chain<2>> && !has_halves<chain<2>>);

}  // namespace ddl
