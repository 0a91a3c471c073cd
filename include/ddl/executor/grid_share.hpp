// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/packet.hpp>
#include <ddl/transport/execution_space.hpp>

namespace ddl {

/// Blocks that share a row of elements out among their threads, and which of them this one is.
struct grid_share {
    int blocks;
    int block;

    /// Of a row that is the rank's own.
    template <execution_space Space>
    static constexpr grid_share of_rank(const Space& space) {
        return {space.blocks(), space.block()};
    }
    /// Of a row that all ranks share.
    template <execution_space Space>
    static constexpr grid_share of_all(const Space& space, int ranks) {
        return {space.blocks() * ranks, space.block() * ranks + space.rank()};
    }
};

/// Shares `count` elements out: calls `packets.operator()<Count>(at, stride)` for the packets `at`, `at + stride`, ... where all of
/// them lie on 16 bytes, `Together` of them or 1 at a time, and `element(at)` for the rest.
///
/// The blocks go through the row side by side, and not each through a part of its own: so all that is on its way in a GPU lies
/// together, which its memory takes at 1.1 times the rate.
template <std::size_t Together, class Element, execution_space Space, class Packets, class One>
constexpr void each_packet(Space& space, grid_share share, std::size_t count, bool aligned, const Packets& packets,
                           const One& element) {
    const auto stride = static_cast<std::uint32_t>(space.threads());  // short counts, for registers are scarce
    const std::uint32_t workers = static_cast<std::uint32_t>(share.blocks) * stride;
    const std::uint32_t before = static_cast<std::uint32_t>(share.block) * stride;
    const auto thread = static_cast<std::uint32_t>(space.thread());
    std::size_t done = 0;
    if constexpr (kernel::fills_packets<Element>)
        if (aligned) {
            const std::size_t all = count / kernel::packet_elements<Element>;
            const std::size_t turn = std::size_t{workers} * Together;
            const std::size_t whole = all < turn ? 0 : all / turn * turn;  // to divide takes a GPU long
            for (std::size_t at = before * Together + thread; at < whole; at += turn)
                packets.template operator()<Together>(at, stride);
            for (std::size_t at = whole + before + thread; at < all; at += workers)
                packets.template operator()<1>(at, stride);
            done = all * kernel::packet_elements<Element>;
        }
    for (std::size_t at = done + before + thread; at < count; at += workers) element(at);
}

}  // namespace ddl
