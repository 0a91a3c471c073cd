// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/grid_fold.hpp>
#include <ddl/executor/grid_meeting.hpp>
#include <ddl/executor/partition.hpp>

namespace ddl {

/// A reduction of long vectors, fused: a block folds its share of all ranks' inputs, in rank order, and stores the result
/// where it belongs: into the outputs of all ranks, that of the root, or, in a reduce-scatter, its rank's own. Inputs may be
/// outputs.
///
/// The body of a grid: blocks of all ranks run at the same time. Each element of each rank is read once and written once.
template <class Op, class Element, collective What = collective::allreduce>
struct grid_two_shot {
    static_assert(What == collective::allreduce || What == collective::reduce || What == collective::reduce_scatter);
    using op_type = Op;  // what a GPU must be able to call: see device_functions.cuh
    using element_type = Element;

    grid_ranks<Element> ranks;
    std::size_t count = 0;
    Op op;         // with [[no_unique_address]] nvcc 13 takes the whole for twice as long, and the driver reads past it
    int root = 0;  // of a reduce

    template <execution_space Space>
    constexpr void operator()(Space& space) const {
        between_meetings(space, ranks, [&] { work(space); });
    }

private:
    using fold = grid_fold<Op, Element>;

    template <class Space>
    constexpr void work(Space& space) const {
        grid_share share = grid_share::of_all(space, ranks.size);
        grid_receivers receivers{0, ranks.size};
        std::size_t from = 0;  // where what is folded begins in the inputs; the outputs begin with it
        std::size_t length = count;
        if constexpr (What == collective::reduce_scatter) {
            const int rank = space.rank();
            const partition blocks{count, ranks.size};
            share = grid_share::of_rank(space);
            receivers = {rank, rank + 1};
            from = blocks.first(rank);
            length = blocks.length(rank);
        } else if constexpr (What == collective::reduce) {
            receivers = {root, root + 1};
        }
        each_packet<fold::together, Element>(
            space, share, length, aligned(receivers, from),
            [&]<std::size_t Count>(std::size_t at, std::size_t stride) {
                const auto packets_of = [&](auto* base) {
                    return [=](std::size_t i) { return base + (at + i * stride) * sizeof(kernel::packet); };
                };
                fold::template packets<Count>(
                    space, ranks.size, receivers, op,
                    [&](int peer) { return packets_of(reinterpret_cast<const std::byte*>(ranks.in[peer] + from)); },
                    [&](int peer) { return packets_of(reinterpret_cast<std::byte*>(ranks.out[peer])); });
            },
            [&](std::size_t at) {
                fold::element(
                    ranks.size, receivers, op, [&](int peer) { return ranks.in[peer] + from + at; },
                    [&](int peer) { return ranks.out[peer] + at; });
            });
    }

    /// Whether packets can be loaded and stored.
    constexpr bool aligned(grid_receivers receivers, std::size_t from) const {
        std::uintptr_t all = 0;
        for (int peer = 0; peer < ranks.size; ++peer) all |= reinterpret_cast<std::uintptr_t>(ranks.in[peer] + from);
        for (int peer = receivers.first; peer < receivers.end; ++peer)
            all |= reinterpret_cast<std::uintptr_t>(ranks.out[peer]);
        return all % sizeof(kernel::packet) == 0;
    }
};

}  // namespace ddl
