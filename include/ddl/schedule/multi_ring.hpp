// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/ring.hpp>

namespace ddl {

/// `Rings` rings at once, the odd ones turning the other way, so that links carry traffic in both directions.
///
/// Chunk `c` of ring `j` is chunk `c * Rings + j` of the buffer: after the first half rank `r` owns `Rings`
/// neighbouring chunks.
///
/// Cost: as `ring`, in `Rings` times as many messages, each `Rings` times shorter.
/// Order: rotates the operands, so `Op` must commute.
template <int Rings>
struct multi_ring {
    static constexpr const char* name = "multi_ring";
    static constexpr int chunks(int size) noexcept { return Rings * size; }
    static constexpr int rounds(int size) noexcept { return ring::rounds(size); }

    static constexpr transfer_list<2 * Rings> round(int rank, int size, int k) noexcept {
        transfer_list<2 * Rings> transfers;
        for (int j = 0; j < Rings; ++j) {
            const bool turns_back = j % 2 != 0;
            // a ring that turns the other way is the same ring with ranks counted from the other end
            const auto seen = ring::round(turns_back ? size - 1 - rank : rank, size, k);
            for (int i = 0; i < seen.size(); ++i) {
                const int peer = turns_back ? size - 1 - seen[i].peer : seen[i].peer;
                const int chunk = turns_back ? size - 1 - seen[i].chunk : seen[i].chunk;
                transfers.push({seen[i].what, peer, chunk * Rings + j});
            }
        }
        return transfers;
    }
};

template <int Rings>
struct arguments_of<multi_ring<Rings>> {
    static constexpr bool fit = Rings >= 1;
    static constexpr void complain() noexcept {
        static_assert(fit, "ddl: multi_ring needs at least one ring; write ddl::multi_ring<2>");
    }
};

template <int Rings>
inline constexpr bool of_the_library<multi_ring<Rings>> = true;
static_assert(schedule<multi_ring<2>> && has_halves<multi_ring<2>>);

}  // namespace ddl
