// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/partition.hpp>
#include <ddl/kernel/packet.hpp>
#include <ddl/transport/execution_space.hpp>

namespace ddl {

/// Elements that a block works on, in a row: from `first` on.
template <class Element>
struct grid_share {
    std::size_t first;
    std::size_t count;

    static constexpr std::size_t unit = kernel::packet_elements<Element>;

    /// Of elements that are all one rank's, the part of a block: cut between packets, counted from the first of them.
    static constexpr grid_share of_run(std::size_t first, std::size_t count, int blocks, int block) noexcept {
        const partition of_blocks{(count + unit - 1) / unit, blocks};
        const std::size_t begin = of_blocks.first(block) * unit;
        return {first + begin, segment_length(count, begin, of_blocks.length(block) * unit)};
    }
    /// Of `count` elements a share of the rank's share.
    static constexpr grid_share of_vector(std::size_t count, int ranks, int rank, int blocks, int block) noexcept {
        const partition of_ranks{(count + unit - 1) / unit, ranks};
        const std::size_t begin = of_ranks.first(rank) * unit;
        return of_run(begin, segment_length(count, begin, of_ranks.length(rank) * unit), blocks, block);
    }
};

/// Shares `count` elements out among the threads of a block: calls `packets.operator()<Count>(at, stride)` for the packets
/// `at`, `at + stride`, ... where all of them lie on 16 bytes, `Together` of them or 1 at a time, and `element(at)` for the rest.
template <std::size_t Together, class Element, execution_space Space, class Packets, class One>
constexpr void each_packet(Space& space, std::size_t count, bool aligned, const Packets& packets, const One& element) {
    std::size_t done = 0;
    if constexpr (kernel::fills_packets<Element>)
        if (aligned) {
            const std::size_t all = count / kernel::packet_elements<Element>;
            const std::size_t stride = space.threads();
            const std::size_t whole = all / (stride * Together) * (stride * Together);
            for (std::size_t at = space.thread(); at < whole; at += stride * Together)
                packets.template operator()<Together>(at, stride);
            for (std::size_t at = whole + space.thread(); at < all; at += stride)
                packets.template operator()<1>(at, stride);
            done = all * kernel::packet_elements<Element>;
        }
    for (std::size_t at = done + space.thread(); at < count; at += space.threads()) element(at);
}

}  // namespace ddl
