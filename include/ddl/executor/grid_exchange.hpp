// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/grid_meeting.hpp>
#include <ddl/executor/grid_share.hpp>

namespace ddl {

/// An all-to-all, fused: two ranks halve the pair of blocks that they have for each other, and each exchanges a half. A thread
/// reads both places before it writes either, and nobody else touches them: so inputs may be outputs, on some ranks or all.
///
/// The body of a grid: blocks of all ranks run at the same time. They share the peers out among them.
template <class Element>
struct grid_exchange {
    grid_ranks<Element> ranks;
    std::size_t each = 0;  // elements of a rank for a rank

    template <execution_space Space>
    constexpr void operator()(Space& space) const {
        between_meetings(space, ranks, [&] {
            // block `b` serves peer `b`, the next ones so many ranks on, with those that come as far apart
            const int lanes = space.blocks() < ranks.size ? space.blocks() : ranks.size;
            const int lane = space.block() % lanes;
            const int helpers = (space.blocks() - lane + lanes - 1) / lanes;
            for (int i = lane; i < ranks.size; i += lanes)
                exchange(space, (space.rank() + i) % ranks.size, {helpers, space.block() / lanes});
        });
    }

private:
    static constexpr std::size_t together = 2;  // pairs of packets that a thread has in flight

    template <class Space>
    constexpr void exchange(Space& space, int peer, grid_share share) const {
        const int rank = space.rank();
        constexpr std::size_t unit = kernel::packet_elements<Element>;
        const std::size_t half = (each / unit + 1) / 2 * unit;  // cut between packets
        const std::size_t cut = rank == peer || half > each ? each : half;
        const std::size_t first = rank > peer ? cut : 0;
        const std::size_t length = rank > peer ? each - cut : cut;
        const auto place = [&](int of) { return static_cast<std::size_t>(of) * each + first; };
        const Element* const ours = ranks.in[rank] + place(peer);
        const Element* const theirs = ranks.in[peer] + place(rank);
        Element* const to_us = ranks.out[rank] + place(peer);
        Element* const to_them = ranks.out[peer] + place(rank);
        const auto all = reinterpret_cast<std::uintptr_t>(ours) | reinterpret_cast<std::uintptr_t>(theirs) |
                         reinterpret_cast<std::uintptr_t>(to_us) | reinterpret_cast<std::uintptr_t>(to_them);
        each_packet<together, Element>(
            space, share, length, all % sizeof(kernel::packet) == 0,
            [&]<std::size_t Count>(std::size_t at, std::size_t stride) {
                const auto byte = [&](std::size_t i) { return (at + i * stride) * sizeof(kernel::packet); };
                kernel::packet sent[Count];
                kernel::packet come[Count];
                kernel::unrolled<Count>([&](auto i) {
                    sent[i] = space.load(reinterpret_cast<const std::byte*>(ours) + byte(i));
                    come[i] = space.load(reinterpret_cast<const std::byte*>(theirs) + byte(i));
                });
                kernel::unrolled<Count>([&](auto i) {
                    space.store(reinterpret_cast<std::byte*>(to_them) + byte(i), sent[i]);
                    space.store(reinterpret_cast<std::byte*>(to_us) + byte(i), come[i]);
                });
            },
            [&](std::size_t at) {
                const Element sent = ours[at];
                const Element come = theirs[at];
                to_them[at] = sent;
                to_us[at] = come;
            });
    }
};

}  // namespace ddl
