// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/kernel/combine.hpp>

#include <bit>

namespace ddl {

/// Operands of a power of two of ranks that ride with a contract: each has a block for every rank, in `room.own` in the order of
/// ranks, and is left with that of its own, folded. `combine`: see `message_run`.
///
/// In round `k` a rank keeps the blocks whose number has its bit `k`, and passes the others that it has left.
///
/// Cost: `log2 p` steps; a half, a quarter, an eighth, ... of the blocks in each.
/// Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005, section 4.3: recursive halving, near
/// ranks first.
/// Order: keeps rank order.
template <class Combine>
struct scattered_rider {
    static constexpr bool in_place = false;

    contract_room room;
    partition blocks;
    std::size_t unit;  // bytes of an element
    const Combine& combine;

    std::byte* arrival() const noexcept { return room.other; }
    std::byte* block(int rank) const noexcept { return room.own + blocks.first(rank) * unit; }
    riding_part leaving(const contract_round&, int rank, int round, int) const noexcept {
        std::byte* end = packed();
        for_each_left(rank, rank ^ 1 << round, round, [&](std::byte* ours, std::size_t bytes) {
            kernel::copy(ours, end, bytes);
            end += bytes;
        });
        return {packed(), static_cast<std::size_t>(end - packed())};
    }
    void take(const contract_round& peers, int rank, int round, int) const {
        const kernel::side side = peers.of == testimony::below ? kernel::side::left : kernel::side::right;
        const std::byte* next = room.other;
        for_each_left(rank, rank, round, [&](std::byte* ours, std::size_t bytes) {
            combine(side, next, ours, ours, bytes);
            next += bytes;
        });
    }

private:
    std::byte* packed() const noexcept { return room.packed_behind(blocks.count * unit); }
    /// Of the blocks that `rank` still has before a round, those that `keeper` keeps.
    template <class Act>
    void for_each_left(int rank, int keeper, int round, const Act& act) const {
        for (int index = rank & ((1 << round) - 1); index < blocks.parts; index += 1 << round)
            if (((index ^ keeper) >> round & 1) == 0) act(block(index), blocks.length(index) * unit);
    }
};

/// Whether the blocks of `count` elements in all ride: among a power of two of ranks alone, and none passes more than half of them,
/// as long as the longest.
template <class Transport>
bool scattered_blocks_ride(const Transport& wire, std::size_t count, std::size_t unit) noexcept {
    const auto ranks = static_cast<unsigned>(wire.size());
    const std::size_t longest = partition{count, wire.size()}.longest();
    return ranks > 1 && std::has_single_bit(ranks) && load_cut::rides(wire, longest * ranks / 2 * unit);
}

}  // namespace ddl
