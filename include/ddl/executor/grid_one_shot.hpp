// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/grid_meeting.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/op/op.hpp>

#include <bit>

namespace ddl {

/// The fewest elements that fill whole words of 32 bits.
template <class Element>
struct parcel {
    static constexpr std::size_t bytes = sizeof(Element) * (sizeof(Element) % 4 == 0   ? 1
                                                            : sizeof(Element) % 2 == 0 ? 2
                                                                                       : 4);
    static constexpr std::size_t elements = bytes / sizeof(Element);
    static constexpr std::size_t words = bytes / sizeof(std::uint32_t);
    /// Those of a block that fit the inbox which it has for each peer.
    static constexpr std::size_t of_a_block = grid_window::inbox / words;

    Element values[elements];
};
template <class Element>
struct parcel_words {
    std::uint32_t values[parcel<Element>::words];
};

/// An allreduce, or a reduce, of short vectors: every rank sends all of its vector to all, and folds everything, in rank order.
///
/// The data is the flag: a word travels as the upper half of 64 bits that are stored at once, below it the number of the
/// shot, so no barrier is needed, and one trip is all that it takes. A word of an earlier shot is told by its number. In
/// turn `shot` the half of the inbox is free that was used two shots before: whoever sends in this one has ended the last,
/// in which it heard from everybody, who had then ended the one before.
///
/// The body of a grid: blocks of all ranks run at the same time. `count` is 1 or more, and at most what `most` says.
/// Source of data as flags: the LL protocol of NCCL.
template <class Op, class Element>
struct grid_one_shot {
    using op_type = Op;  // what a GPU must be able to call: see device_functions.cuh
    using element_type = Element;

    /// Numbers of shots start again after as many. Odd, so that a number comes back in the other half first; below 2^32, so
    /// that 0, which fresh memory holds, is none.
    static constexpr std::uint64_t cycle = 0xffff'ffff;

    /// What a block can carry; 0 if an element does not fit.
    static constexpr std::size_t parcels_of_a_block = parcel<Element>::of_a_block;

    grid_ranks<Element> ranks;
    std::size_t count = 0;
    Op op;  // with [[no_unique_address]] nvcc 13 takes the whole for twice as long, and the driver reads past it
    /// Of a reduce, who alone stores the result. The others hear from all too, lest one is two shots ahead.
    int root = -1;

    /// The most elements that so many blocks of a rank can carry.
    static constexpr std::size_t most(int blocks) noexcept {
        return unit::of_a_block * unit::elements * static_cast<std::size_t>(blocks);
    }
    static constexpr std::size_t parcels(std::size_t count) noexcept {
        return (count + unit::elements - 1) / unit::elements;
    }

    template <execution_space Space>
    constexpr void operator()(Space& space) const {
        const int block = space.block();
        const grid_window ours = ranks.window(space.rank());
        const std::uint64_t shot = space.load_relaxed(ours.shots(block)) + 1;
        if (shot >= cycle && shot % cycle < 2 && !forget(space, shot)) return;
        const partition of_blocks{parcels(count), space.blocks()};
        const std::size_t first = of_blocks.first(block);
        const std::size_t length = of_blocks.length(block);
        for (std::size_t i = space.thread(); i < length; i += space.threads()) send(space, shot, i, first + i);
        bool came = true;
        for (std::size_t i = space.thread(); i < length && came; i += space.threads())
            came = receive(space, shot, i, first + i);
        if (!space.all(came)) return;  // a barrier: all threads have read the number
        if (space.thread() == 0) space.store_relaxed(ours.shots(block), shot);
    }

private:
    using accumulator = accumulator_t<Op, Element>;
    using unit = parcel<Element>;
    using words = parcel_words<Element>;

    static constexpr std::uint32_t mark(std::uint64_t shot) noexcept {
        return static_cast<std::uint32_t>(shot % cycle + 1);
    }

    /// Where numbers start again: wipes the half that is about to be used, lest a word of the last cycle is taken for new.
    template <class Space>
    constexpr bool forget(Space& space, std::uint64_t shot) const {
        const grid_window ours = ranks.window(space.rank());
        std::uint64_t* const stale = ours.words_from(0, space.block(), shot);
        const std::size_t length = grid_window::inbox * static_cast<std::size_t>(ranks.size);
        for (std::size_t i = space.thread(); i < length; i += space.threads()) space.store_relaxed(stale + i, 0);
        std::uint64_t* const meetings = ours.meetings(space.block());
        const std::uint64_t meeting = space.load_relaxed(meetings) + 2;  // as many as a call has
        if (!meet(space, ranks, meeting)) return false;
        if (space.thread() == 0) space.store_relaxed(meetings, meeting);
        return true;
    }

    /// Elements of a parcel that there are: the last one may be short.
    constexpr std::size_t valid(std::size_t index) const noexcept {
        return segment_length(count, index * unit::elements, unit::elements);
    }

    template <class Space>
    constexpr void send(Space& space, std::uint64_t shot, std::size_t place, std::size_t index) const {
        const Element* const from = ranks.in[space.rank()] + index * unit::elements;
        const std::size_t here = valid(index);
        kernel::values_of<unit, 1> filled;
        // what is missing of the last one is filled with what there is: any value will do
        kernel::unrolled<unit::elements>([&](auto i) { filled.values[0].values[i] = from[i < here ? i : 0]; });
        const auto out = std::bit_cast<words>(filled.values[0]);
        for (int peer = 0; peer < ranks.size; ++peer) {
            if (peer == space.rank()) continue;
            std::uint64_t* const to =
                ranks.window(peer).words_from(space.rank(), space.block(), shot) + place * unit::words;
            kernel::unrolled<unit::words>(
                [&](auto i) { space.store_relaxed(to + i, std::uint64_t{out.values[i]} << 32 | mark(shot)); });
        }
    }

    /// Sources of which a thread waits at the same time: one trip to memory instead of one for each.
    static constexpr std::size_t together = unit::words <= 1 ? 8 : unit::words <= 4 ? 4 : 1;

    template <class Space>
    constexpr bool receive(Space& space, std::uint64_t shot, std::size_t place, std::size_t index) const {
        const std::size_t here = valid(index);
        const std::size_t at = index * unit::elements;
        kernel::values_of<accumulator, unit::elements> sum;
        for (int begin = 0; begin < ranks.size; begin += static_cast<int>(together)) {
            words arrived[together];
            int missed = -1;
            const auto look = [&] {
                std::uint64_t seen[together][unit::words];
                const auto from = [&](int peer) {
                    return ranks.window(space.rank()).words_from(peer, space.block(), shot) + place * unit::words;
                };
                kernel::unrolled<together>([&](auto s) {
                    if (const int peer = begin + static_cast<int>(s); awaited(space, peer))
                        kernel::unrolled<unit::words>([&](auto i) { seen[s][i] = space.load_relaxed(from(peer) + i); });
                });
                missed = -1;
                kernel::unrolled<together>([&](auto s) {
                    if (const int peer = begin + static_cast<int>(s); awaited(space, peer))
                        kernel::unrolled<unit::words>([&](auto i) {
                            if (static_cast<std::uint32_t>(seen[s][i]) != mark(shot)) missed = peer;
                            arrived[s].values[i] = static_cast<std::uint32_t>(seen[s][i] >> 32);
                        });
                });
                return missed < 0;
            };
            if (!space.wait(look, [&] { return missed; })) return false;
            kernel::unrolled<together>([&](auto s) {
                const int peer = begin + static_cast<int>(s);
                if (peer >= ranks.size) return;
                if (peer == space.rank()) {
                    const Element* const own = ranks.in[peer] + at;
                    kernel::unrolled<unit::elements>(
                        [&](auto i) { fold_in(peer, sum.values[i], own[i < here ? i : 0]); });
                } else {
                    const auto theirs = std::bit_cast<unit>(arrived[s]);
                    kernel::unrolled<unit::elements>([&](auto i) { fold_in(peer, sum.values[i], theirs.values[i]); });
                }
            });
        }
        if (root >= 0 && space.rank() != root) return true;
        Element* const out = ranks.out[space.rank()] + at;
        kernel::unrolled<unit::elements>([&](auto i) {
            if (i < here) out[i] = static_cast<Element>(ddl::finish(op, sum.values[i], ranks.size));
        });
        return true;
    }

    template <class Space>
    constexpr bool awaited(const Space& space, int peer) const {
        return peer < ranks.size && peer != space.rank();
    }

    constexpr void fold_in(int peer, accumulator& sum, const Element& value) const {
        if (peer == 0) sum = static_cast<accumulator>(value);
        else sum = op(sum, static_cast<accumulator>(value));
    }
};

}  // namespace ddl
