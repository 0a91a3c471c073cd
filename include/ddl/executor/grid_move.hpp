// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/grid_fold.hpp>
#include <ddl/executor/grid_meeting.hpp>
#include <ddl/executor/partition.hpp>

namespace ddl {

/// A collective that moves elements from one place to one or many, fused: every rank has one piece to move, loads it once,
/// and stores it wherever it belongs.
///
/// all-gather and gather: its own block, to all ranks or the root. Scatter: its block, which lies at the root. Broadcast: a
/// share of what lies at the root, to all ranks but the root, so that the root's link carries the vector once.
///
/// The body of a grid: blocks of all ranks run at the same time.
template <class Element, collective What>
struct grid_move {
    static_assert(What == collective::all_gather || What == collective::gather || What == collective::scatter ||
                  What == collective::broadcast);

    grid_ranks<Element> ranks;
    std::size_t count = 0;  // of the whole vector
    int root = 0;

    template <execution_space Space>
    constexpr void operator()(Space& space) const {
        between_meetings(space, ranks, [&] { work(space); });
    }

private:
    static constexpr std::size_t together = 4;  // packets that a thread has in flight

    template <class Space>
    constexpr void work(Space& space) const {
        const int rank = space.rank();
        const partition blocks{count, ranks.size};
        const bool shared = What == collective::broadcast;
        const std::size_t length = shared ? count : blocks.length(rank);
        const std::size_t own = blocks.first(rank);
        const Element* const from =
            ranks.in[shared || What == collective::scatter ? root : rank] + (What == collective::scatter ? own : 0);
        const std::size_t target = What == collective::all_gather || What == collective::gather ? own : 0;
        const grid_receivers receivers = What == collective::gather    ? grid_receivers{root, root + 1}
                                         : What == collective::scatter ? grid_receivers{rank, rank + 1}
                                                                       : grid_receivers{0, ranks.size};
        const auto each_receiver = [&](const auto& act) {
            for (int peer = receivers.first; peer < receivers.end; ++peer)
                if (Element* const to = ranks.out[peer] + target; to != from) act(to);
        };
        std::uintptr_t all = reinterpret_cast<std::uintptr_t>(from);
        each_receiver([&](Element* to) { all |= reinterpret_cast<std::uintptr_t>(to); });
        each_packet<together, Element>(
            space, shared ? grid_share::of_all(space, ranks.size) : grid_share::of_rank(space), length,
            all % sizeof(kernel::packet) == 0,
            [&]<std::size_t Count>(std::size_t at, std::size_t stride) {
                const auto place = [&](std::size_t i) { return (at + i * stride) * sizeof(kernel::packet); };
                kernel::packet kept[Count];
                kernel::unrolled<Count>(
                    [&](auto i) { kept[i] = space.load(reinterpret_cast<const std::byte*>(from) + place(i)); });
                each_receiver([&](Element* to) {
                    kernel::unrolled<Count>(
                        [&](auto i) { space.store(reinterpret_cast<std::byte*>(to) + place(i), kept[i]); });
                });
            },
            [&](std::size_t at) {
                const Element value = from[at];
                each_receiver([&](Element* to) { to[at] = value; });
            });
    }
};

}  // namespace ddl
