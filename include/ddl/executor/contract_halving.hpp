// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract_load.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/schedule/recursive_halving.hpp>

#include <algorithm>
#include <bit>

namespace ddl {

/// A payload of which each round of a contract halves what a rank still works on, as an allreduce by `recursive_halving` does:
/// its pairs meet in the order of a contract. At last a chunk of its own is left.
template <class Transport>
struct halving_load {
    static constexpr bool in_parts = true;

    const Transport& wire;
    partition chunks;
    std::size_t unit;  // bytes of an element
    const std::byte* payload;
    std::byte* result = nullptr;  // where the chunk is folded at last, if that need not be in scratch
    nearer close = first_pairs(wire);

    /// Whether a payload can be sent so: every rank keeps something, and no part is too long, or of too many pieces.
    bool fits() const noexcept {
        const auto ranks = static_cast<unsigned>(chunks.parts);
        bool all = chunks.parts > 1 && std::has_single_bit(ranks) && chunks.count >= ranks;
        for (int count = chunks.parts / 2; all && count > 0; count /= 2) {
            for (const passage way : {passage::both_ways, passage::beside}) {
                load_cut part = of({0, count}, way);  // the longest; a shorter one may be cut finer
                part.piece = std::min(part.piece, of({chunks.parts - count, count}, way).piece);
                part.pieces = (part.bytes + part.piece - 1) / part.piece;
                all = all && part.fits(longest_part());
            }
        }
        return all;
    }
    bool moves(int from, int to, int, int, nearer) const noexcept { return from >= 0 && to >= 0; }
    load_part given(int rank, int round) const noexcept { return part(rank, round, peer(rank, round)); }
    load_part kept(int rank, int round) const noexcept { return part(rank, round, rank); }

private:
    /// In bytes. Few ranks of one host gain by longer ones: what has been combined lies in scratch, which no peer has read, and
    /// storing to lines that one has read takes long where cores share little. Parts of more ranks would not stay in the caches.
    std::size_t longest_part() const noexcept {
        if constexpr (requires { wire.on_one_host(); })
            if (wire.on_one_host() && chunks.parts <= most_direct_ranks) return longest_message;
        return longest_message / 2;
    }
    std::size_t first(int chunk) const noexcept { return chunks.first(chunk) * unit; }
    load_cut of(chunk_range range, passage way) const noexcept {
        return load_cut::of_part(cut_of(wire), first(range.first + range.count) - first(range.first), unit, way);
    }
    /// What `keeper` has left behind a round, in what `rank` has before it.
    load_part part(int rank, int round, int keeper) const noexcept {
        const chunk_range left = left_by_halving(keeper, chunks.parts, round + 1, close);
        return {first(left.first) - first(left_by_halving(rank, chunks.parts, round, close).first),
                of(left, exchange_with(wire, peer(rank, round)))};
    }
    int peer(int rank, int round) const noexcept { return rank ^ distance_of_pairs(chunks.parts, round, close); }
};

/// The second half: the same pairs backwards exchange all that they have.
constexpr auto gather_after_halving(int size, nearer close = nearer::neighbours) noexcept {
    return rest_of<recursive_halving::nearest_first>{recursive_halving::allreduce(size, close), ceil_log2(size)};
}

}  // namespace ddl
