// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/grid_meeting.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/op/op.hpp>

namespace ddl {

/// The part of `count` elements that a block folds: a share of its rank's share, cut between packets.
template <class Element>
struct grid_share {
    std::size_t first;
    std::size_t count;

    constexpr grid_share(std::size_t all, int ranks, int rank, int blocks, int block) noexcept : first{}, count{} {
        constexpr std::size_t unit = kernel::packet_elements<Element>;
        const partition of_ranks{(all + unit - 1) / unit, ranks};
        const partition of_blocks{of_ranks.length(rank), blocks};
        first = (of_ranks.first(rank) + of_blocks.first(block)) * unit;
        count = segment_length(all, first, of_blocks.length(block) * unit);
    }
};

/// An allreduce of long vectors, fused: a block folds its share of all ranks' inputs, in rank order, and stores the result
/// into the outputs of all. Accumulates in `accumulator_t<Op, Element>`, rounds once. Inputs may be outputs.
///
/// The body of a grid: blocks of all ranks run at the same time. Each element of each rank is read once and written once.
template <class Op, class Element>
struct grid_two_shot {
    grid_ranks<Element> ranks;
    std::size_t count = 0;
    [[no_unique_address]] Op op;

    template <execution_space Space>
    constexpr void operator()(Space& space) const {
        between_meetings(space, ranks, [&] {
            fold(space, grid_share<Element>{count, ranks.size, space.rank(), space.blocks(), space.block()});
        });
    }

private:
    using accumulator = accumulator_t<Op, Element>;
    static constexpr std::size_t unit = kernel::packet_elements<Element>;

    /// Packets that a thread folds at a time: as many as keep loads in flight without filling the registers.
    static constexpr std::size_t together = sizeof(accumulator) * unit <= 16   ? 4
                                            : sizeof(accumulator) * unit <= 32 ? 2
                                                                               : 1;

    template <class Space>
    constexpr void fold(Space& space, const grid_share<Element> mine) const {
        std::size_t done = 0;
        if constexpr (kernel::fills_packets<Element>)
            if (aligned(mine.first)) {
                const std::size_t packets = mine.count / unit;
                const std::size_t stride = space.threads();
                const std::size_t whole = packets / (stride * together) * (stride * together);
                for (std::size_t at = space.thread(); at < whole; at += stride * together)
                    fold_packets<together>(space, mine.first, at, stride);
                for (std::size_t at = whole + space.thread(); at < packets; at += stride)
                    fold_packets<1>(space, mine.first, at, stride);
                done = packets * unit;
            }
        for (std::size_t at = done + space.thread(); at < mine.count; at += space.threads())
            fold_element(mine.first + at);
    }

    /// Whether packets can be loaded and stored from element `first` on.
    constexpr bool aligned(std::size_t first) const {
        std::uintptr_t all = 0;
        for (int rank = 0; rank < ranks.size; ++rank)
            all |= reinterpret_cast<std::uintptr_t>(ranks.in[rank] + first) |
                   reinterpret_cast<std::uintptr_t>(ranks.out[rank] + first);
        return all % sizeof(kernel::packet) == 0;
    }

    template <std::size_t Count, class Space>
    constexpr void fold_packets(Space& space, std::size_t first, std::size_t at, std::size_t stride) const {
        using wide = kernel::values_of<accumulator, unit>;
        const auto fetch = [&](int rank, kernel::packet(&to)[Count]) {
            const auto* const from = reinterpret_cast<const std::byte*>(ranks.in[rank] + first);
            kernel::unrolled<Count>(
                [&](auto i) { to[i] = space.load(from + (at + i * stride) * sizeof(kernel::packet)); });
        };
        kernel::packet next[Count];
        wide sum[Count];
        fetch(0, next);
        kernel::unrolled<Count>([&](auto i) { space.template widen<Element>(next[i], sum[i]); });
        for (int rank = 1; rank < ranks.size; ++rank) {
            fetch(rank, next);
            kernel::unrolled<Count>([&](auto i) {
                wide operand;
                space.template widen<Element>(next[i], operand);
                kernel::unrolled<unit>([&](auto k) { sum[i].values[k] = op(sum[i].values[k], operand.values[k]); });
            });
        }
        kernel::unrolled<Count>([&](auto i) {
            using finished = std::remove_cvref_t<decltype(ddl::finish(op, sum[0].values[0], 1))>;
            kernel::values_of<finished, unit> last;
            kernel::unrolled<unit>([&](auto k) { last.values[k] = ddl::finish(op, sum[i].values[k], ranks.size); });
            next[i] = space.template narrow<Element>(last);
        });
        for (int rank = 0; rank < ranks.size; ++rank) {
            auto* const to = reinterpret_cast<std::byte*>(ranks.out[rank] + first);
            kernel::unrolled<Count>(
                [&](auto i) { space.store(to + (at + i * stride) * sizeof(kernel::packet), next[i]); });
        }
    }

    constexpr void fold_element(std::size_t at) const {
        accumulator sum = static_cast<accumulator>(ranks.in[0][at]);
        for (int rank = 1; rank < ranks.size; ++rank) sum = op(sum, static_cast<accumulator>(ranks.in[rank][at]));
        const Element result = static_cast<Element>(ddl::finish(op, sum, ranks.size));
        for (int rank = 0; rank < ranks.size; ++rank) ranks.out[rank][at] = result;
    }
};

}  // namespace ddl
