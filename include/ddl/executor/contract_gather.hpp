// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/schedule/schedule.hpp>

#include <bit>

namespace ddl {

/// The ranks whose blocks `rank` holds before round `round` of a contract that gathers them.
constexpr chunk_range gathered_by_doubling(int rank, int size, int round) noexcept {
    const int folded = size - static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
    const int doublings = folded > 0 ? round - 1 : round;
    if (doublings < 0 || (rank < 2 * folded && rank % 2 == 0)) return {rank, 1};
    const auto first_of = [folded](int place) { return place < folded ? 2 * place : place + folded; };
    const int first = recursive_doubling::place(rank, size) >> doublings << doublings;
    return {first_of(first), first_of(first + (1 << doublings)) - first_of(first)};
}

/// Blocks of all ranks that ride with a contract, and lie in `room.own` in the order of ranks, this rank's own from the
/// beginning, those of all at last.
struct gathered_rider {
    static constexpr bool in_place = true;

    contract_room room;
    partition blocks;
    std::size_t unit;  // bytes of an element

    /// Whether the blocks of `count` elements in all ride. Among a power of two of ranks none passes more than the first half.
    template <class Transport>
    static bool fits(const Transport& wire, std::size_t count, std::size_t unit) noexcept {
        const int size = wire.size();
        const bool halves = size > 1 && std::has_single_bit(static_cast<unsigned>(size));
        return load_cut::rides(wire, (halves ? partition{count, size}.first(size / 2) : count) * unit);
    }

    std::byte* arrival() const noexcept { return room.other; }
    std::byte* block(int rank) const noexcept { return room.own + blocks.first(rank) * unit; }
    riding_part leaving(const contract_round&, int rank, int round, int size) const noexcept {
        return part(gathered_by_doubling(rank, size, round));
    }
    void take(const contract_round& peers, int, int round, int size) const noexcept {
        const riding_part theirs = part(gathered_by_doubling(peers.from, size, round));
        kernel::copy(room.other, theirs.body, theirs.bytes);
    }

private:
    riding_part part(chunk_range ranks) const noexcept {
        std::byte* const body = block(ranks.first);
        return {body, static_cast<std::size_t>(block(ranks.first + ranks.count) - body)};
    }
};

}  // namespace ddl
