// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/memory.hpp>
#include <ddl/kernel/fold.hpp>

namespace ddl {

/// The blocks that ranks hand out in a call: rank `r` publishes `length(r, part)` elements from `first(r, part)` of its
/// `in` on, for each of `parts` parts; none where the length is 0. `longest` is an upper bound of all lengths, equal on all
/// ranks.
template <class Element, class First, class Length>
struct published_blocks {
    const Element* in;
    std::size_t count;  // elements of `in`
    int parts;
    First first;
    Length length;
    std::size_t longest;
    int kept = -1;  // the part of this rank that no other rank wants

    bool any_of(int rank) const {
        for (int part = 0; part < parts; ++part)
            if (length(rank, part) != 0) return true;
        return false;
    }
};

// clang 14 and 16 do not deduce the arguments of an aggregate by themselves
template <class Element, class First, class Length>
published_blocks(const Element*, std::size_t, int, First, Length, std::size_t)
    -> published_blocks<Element, First, Length>;
template <class Element, class First, class Length>
published_blocks(const Element*, std::size_t, int, First, Length, std::size_t, int)
    -> published_blocks<Element, First, Length>;

/// Hands the blocks out: in the notices if they are short, straight from where they lie if all ranks can map them, else
/// staged in segments. The schedule `direct` over memory, for collectives without a second half.
///
/// `consume(begin, count, fetch)` may read up to `count` elements from element `begin` on of each block:
/// `fetch(peer, part)`. Cost: 1 step for short blocks, 2 for mapped ones, else 1 a segment.
template <memory_transport Transport, class Element, class First, class Length, class Consume>
protocol direct_stream(memory_call<Transport>& here, published_blocks<Element, First, Length> blocks, Consume consume) {
    using places = typename memory_call<Transport>::places;
    const int rank = here.rank();
    const bool publishes = blocks.any_of(rank);
    const auto each_part = [&](auto use) {
        for (int part = 0; part < blocks.parts; ++part) use(part, blocks.length(rank, part));
    };

    const std::size_t all_bytes = blocks.longest * static_cast<std::size_t>(blocks.parts) * sizeof(Element);
    if (alignof(Element) <= 16 && all_bytes <= notice::room) {
        alignas(16) std::byte line[notice::room] = {};
        each_part([&](int part, std::size_t length) {
            if (length != 0)
                std::memcpy(line + static_cast<std::size_t>(part) * blocks.longest * sizeof(Element),
                            blocks.in + blocks.first(rank, part), length * sizeof(Element));
        });
        here.announce(line, sizeof line);
        consume(std::size_t{0}, blocks.longest, [&](int peer, int part) {
            return reinterpret_cast<const Element*>(here.carried(peer)) +
                   static_cast<std::size_t>(part) * blocks.longest;
        });
        here.end();
        return protocol::in_notice;
    }

    const std::size_t each = here.segment(sizeof(Element), blocks.parts);
    if (each == 0 && publishes) {
        // elements too large for staging: memory that all can map stands in for the caller's
        auto* const stand_in = reinterpret_cast<Element*>(here.memory_for_all(blocks.count * sizeof(Element)));
        kernel::copy(blocks.in, stand_in, blocks.count);
        blocks.in = stand_in;
    }
    const auto stage = [&](std::size_t turn) {
        const std::size_t begin = turn * each;
        each_part([&](int part, std::size_t length) {
            if (length <= begin || part == blocks.kept) return;
            kernel::copy(blocks.in + blocks.first(rank, part) + begin,
                         here.template staged<Element>(rank, turn, part, each),
                         length - begin < each ? length - begin : each);
        });
    };
    places ours;
    const bool is_long = each == 0 || all_bytes >= limits_of<Transport>.mapped_move;
    if (publishes && is_long) ours.in = here.ranks().address_of(blocks.in, blocks.count * sizeof(Element));
    if (ours.in == 0) stage(0);
    here.announce(ours);
    int maps = 0;
    int publishing = 0;
    for (int peer = 0; peer < here.size(); ++peer) {
        publishing += blocks.any_of(peer);
        maps += here.announced(peer).in != 0;
    }
    if (maps == publishing) {
        here.share([&] {
            consume(std::size_t{0}, blocks.longest, [&](int peer, int part) {
                const std::size_t first = blocks.first(peer, part);
                return here.template mapped<const Element>(peer, here.announced(peer).in,
                                                           first + blocks.length(peer, part)) +
                       first;
            });
        });
        here.end();
        return protocol::mapped;
    }
    if (maps != 0) {  // those who hoped for the others' buffers stage theirs too
        if (ours.in != 0) stage(0);
        here.step();
    }
    for (std::size_t turn = 0; turn * each < blocks.longest; ++turn) {
        const bool goes_on = (turn + 1) * each < blocks.longest;
        if (goes_on) stage(turn + 1);
        consume(turn * each, each, [&](int peer, int part) {
            if (peer == rank) return blocks.in + blocks.first(rank, part) + turn * each;
            return static_cast<const Element*>(here.template staged<Element>(peer, turn, part, each));
        });
        if (goes_on) here.step();
    }
    here.end();
    return protocol::staged;
}

/// Every rank takes copies: `wants(copy)` calls `copy(peer, part, to)` for each block that this rank wants.
template <memory_transport Transport, class Element, class First, class Length, class Wants>
protocol direct_move(memory_call<Transport>&& here, published_blocks<Element, First, Length> blocks, Wants wants) {
    return direct_stream(here, blocks, [&](std::size_t begin, std::size_t most, auto fetch) {
        wants([&](int peer, int part, Element* to) {
            const std::size_t length = blocks.length(peer, part);
            if (begin >= length) return;
            kernel::copy(fetch(peer, part), to + begin, length - begin < most ? length - begin : most);
        });
    });
}

/// Rank `r` folds part `r` of all ranks, in rank order, into its `out`: a reduce-scatter. All parts of one number are of
/// equal length on all ranks.
template <memory_transport Transport, class Element, class First, class Length, class Op>
protocol direct_fold_blocks(memory_call<Transport>&& here, published_blocks<Element, First, Length> blocks,
                            Element* out, const Op& op) {
    const int rank = here.rank();
    return direct_stream(here, blocks, [&](std::size_t begin, std::size_t most, auto fetch) {
        const std::size_t length = blocks.length(rank, rank);
        if (begin >= length) return;
        kernel::fold([&](int peer) { return fetch(peer, rank); }, here.size(), out + begin,
                     length - begin < most ? length - begin : most, op, here.size());
    });
}

}  // namespace ddl
