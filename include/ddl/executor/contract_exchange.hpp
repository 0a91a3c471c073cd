// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract.hpp>

#include <bit>

namespace ddl {

/// Blocks that each rank of a power of two has for each, and that ride with a contract: slot `r` in `room.own` is for rank `r`
/// in the beginning, and from rank `r` at last.
///
/// In round `k` a rank passes the slots whose bit `k` is not its own, and its partner's, in the same order, take their place:
/// then that bit says whom a block is from.
///
/// Cost: `log2 p` steps; half of the slots in each.
/// Source: Johnsson and Ho, IEEE Trans. Comput. 38(9), 1989: all-to-all personalized communication, by exchanges in one
/// dimension of a hypercube after the other.
struct exchanged_rider {
    static constexpr bool in_place = false;

    contract_room room;
    int slot_count;
    std::size_t each;  // bytes of a block

    /// Whether blocks of `each` bytes for each rank ride.
    template <class Transport>
    static bool fits(const Transport& wire, std::size_t each) noexcept {
        const auto ranks = static_cast<unsigned>(wire.size());
        return ranks > 1 && std::has_single_bit(ranks) && load_cut::rides(wire, each * ranks / 2);
    }

    std::byte* arrival() const noexcept { return room.other; }
    std::byte* slot(int index) const noexcept { return room.own + static_cast<std::size_t>(index) * each; }
    riding_part leaving(const contract_round&, int rank, int round, int) const noexcept {
        std::byte* end = packed();
        for_each_leaving(rank, round, [&](std::byte* block) {
            kernel::copy(block, end, each);
            end += each;
        });
        return {packed(), static_cast<std::size_t>(end - packed())};
    }
    void take(const contract_round&, int rank, int round, int) const noexcept {
        const std::byte* next = room.other;
        for_each_leaving(rank, round, [&](std::byte* block) {
            kernel::copy(next, block, each);
            next += each;
        });
    }

private:
    std::byte* packed() const noexcept { return room.packed_behind(static_cast<std::size_t>(slot_count) * each); }
    template <class Act>
    void for_each_leaving(int rank, int round, const Act& act) const {
        for (int index = 0; index < slot_count; ++index)
            if (((index ^ rank) >> round & 1) != 0) act(slot(index));
    }
};

}  // namespace ddl
