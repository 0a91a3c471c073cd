// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/memory.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/kernel/swap.hpp>

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
    int kept = -1;  // the part of this rank, where part `r` is wanted by rank `r` alone
    /// Where this rank wants the only block, if one rank hands it to all others.
    std::remove_const_t<Element>* into = nullptr;
    /// `in`, if what a peer hands to this rank takes the place of what this rank hands to it: an all-to-all in place.
    std::remove_const_t<Element>* in_place = nullptr;

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

/// Hands out blocks that are so short that the notices carry all of a rank's, each in a place of `longest` elements.
template <memory_transport Transport, class Blocks, class Consume>
protocol stream_in_notices(memory_call<Transport>& here, const Blocks& blocks, const Consume& consume) {
    using element = std::remove_const_t<std::remove_pointer_t<decltype(blocks.in)>>;
    const auto place = [&](int part) { return static_cast<std::size_t>(part) * blocks.longest; };
    for (int part = 0; part < blocks.parts; ++part)
        if (const std::size_t length = blocks.length(here.rank(), part); length != 0)
            std::memcpy(here.room() + place(part) * sizeof(element), blocks.in + blocks.first(here.rank(), part),
                        length * sizeof(element));
    here.announce();
    consume(std::size_t{0}, blocks.longest,
            [&](int peer, int part) { return reinterpret_cast<const element*>(here.carried(peer)) + place(part); });
    return protocol::in_notice;
}

/// Whether blocks are of so few lines that it takes longer to look for what suits longer ones: they are staged whole, where
/// the call before the last staged if its blocks were as long, and nobody hands lines back.
template <memory_transport Transport, class Blocks>
bool are_few_lines(const memory_call<Transport>& here, const Blocks& blocks) noexcept {
    using element = std::remove_const_t<std::remove_pointer_t<decltype(blocks.in)>>;
    const std::size_t each = blocks.longest * sizeof(element), parts = static_cast<std::size_t>(blocks.parts);
    return each < 2048 && each * parts < here.limits().mapped_move &&
           (each + here.template apart<element>)*parts <= here.area();
}

/// Hands out such blocks.
template <memory_transport Transport, class Blocks, class Consume>
protocol stream_few_lines(memory_call<Transport>& here, const Blocks& blocks, const Consume& consume) {
    using element = std::remove_const_t<std::remove_pointer_t<decltype(blocks.in)>>;
    const int rank = here.rank();
    here.ranks().turn_staging();
    const auto place = [&](int peer, int part) { return here.template staged<element>(peer, 0, part, blocks.longest); };
    const auto each_to_stage = [&](auto visit) {
        for (int part = 0; part < blocks.parts; ++part)
            if (part != blocks.kept)
                if (const std::size_t length = blocks.length(rank, part); length != 0) visit(part, length);
    };
    std::size_t staged = 0;
    each_to_stage([&](int part, std::size_t length) {
        kernel::copy(blocks.in + blocks.first(rank, part), place(rank, part), length);
        staged += length * sizeof(element);
    });
    here.announce();
    if (here.reclaims(staged))
        each_to_stage(
            [&](int part, std::size_t length) { here.template reclaim<element>(part, blocks.longest, length); });
    consume(std::size_t{0}, blocks.longest, [&](int peer, int part) {
        return peer == rank ? blocks.in + blocks.first(rank, part) : static_cast<const element*>(place(peer, part));
    });
    return protocol::staged;
}

/// How many elements of the only block each rank fetches, if its publisher, who wants nothing itself, brings it the rest: so many
/// that all ranks copy alike.
template <memory_transport Transport, class Blocks>
std::size_t fetched_part(const memory_call<Transport>& here, const Blocks& blocks) {
    constexpr std::size_t together = 64;  // few lines are written by both
    const std::size_t brought = blocks.longest / static_cast<std::size_t>(here.size());
    return (blocks.longest - brought + together - 1) / together * together;
}

/// Brings the ranks whose memory can be mapped the part of this rank's only block that they do not fetch.
template <memory_transport Transport, class Blocks>
void bring_part(memory_call<Transport>& here, const Blocks& blocks) {
    using element = std::remove_const_t<std::remove_pointer_t<decltype(blocks.in)>>;
    const std::size_t fetched = fetched_part(here, blocks);
    if (fetched >= blocks.longest) return;
    const auto how = here.stores_beside(blocks.longest * sizeof(element) * static_cast<std::size_t>(here.size()));
    for (int i = 1; i < here.size(); ++i) {
        const int peer = (here.rank() + i) % here.size();
        if (const std::uint64_t out = here.announced(peer).out; out != 0)
            kernel::copy(blocks.in + fetched, here.template mapped<element>(peer, out, blocks.longest) + fetched,
                         blocks.longest - fetched, how);
    }
    kernel::settle(how);
}

/// Exchanges the blocks that this rank and each other have for each other, in the place of those: two ranks halve each pair, and
/// nobody else touches what one of them exchanges.
template <memory_transport Transport, class Blocks>
void exchange_in_place(memory_call<Transport>& here, const Blocks& blocks) {
    using element = std::remove_const_t<std::remove_pointer_t<decltype(blocks.in)>>;
    const int rank = here.rank();
    const partition halves{blocks.longest, 2};
    for (int i = 1; i < here.size(); ++i) {
        const int peer = (rank + i) % here.size(), half = rank < peer ? 0 : 1;
        auto* const theirs = here.template mapped<element>(peer, here.announced(peer).in, blocks.count);
        kernel::swap(blocks.in_place + blocks.first(rank, peer) + halves.first(half),
                     theirs + blocks.first(peer, rank) + halves.first(half), halves.length(half));
    }
}

/// Hands out blocks that are longer: straight from where they lie if all ranks can map them, else staged in segments.
template <memory_transport Transport, class Blocks, class Consume>
protocol stream_by_memory(memory_call<Transport>& here, Blocks blocks, std::size_t bytes, const Consume& consume) {
    using element = std::remove_const_t<std::remove_pointer_t<decltype(blocks.in)>>;
    const int rank = here.rank();
    const bool publishes = blocks.any_of(rank);
    int publishing = 0;
    for (int peer = 0; peer < here.size(); ++peer) publishing += blocks.any_of(peer);
    const bool keeps = blocks.kept >= 0;
    const int rooms = blocks.parts - keeps;
    const auto room = [&](int peer, int part) { return keeps ? here.among_others(peer, part) : part; };
    // what one rank hands out to one that has nothing else to do goes in shorter segments: one is read while the next is
    // staged. Of more readers some may share a core, where a step costs more than that brings
    std::size_t shorter = 1;
    if (here.size() == 2) {
        here.take_turns(here.limits().areas);
        shorter = here.limits().areas / 2;
        if (blocks.parts == 1 && publishing == 1 && shorter < 4) shorter = 4;
    }
    const std::size_t each = here.template segment<element>(rooms, shorter);
    if (each == 0 && publishes) {
        // elements too large for staging: memory that all can map stands in for the caller's
        auto* const stand_in = reinterpret_cast<element*>(here.memory_for_all(blocks.count * sizeof(element)));
        kernel::copy(blocks.in, stand_in, blocks.count);
        blocks.in = stand_in;
        blocks.in_place = nullptr;
    }
    here.ranks().turn_staging();
    if (each != 0 && here.spreads(blocks.longest * sizeof(element)))
        here.template spread<element>(blocks.longest, each, rooms, publishing * rooms);
    const auto each_to_stage = [&](std::size_t turn, auto visit) {
        for (int part = 0; part < blocks.parts; ++part)
            if (part != blocks.kept)
                if (const auto length = segment_length(blocks.length(rank, part), turn * each, each); length != 0)
                    visit(part, length);
    };
    const auto place = [&](int peer, std::size_t past_line, std::size_t turn, int part) {
        const auto past = here.template past<element>(past_line, blocks.first(peer, part), blocks.longest > each);
        return here.template staged<element>(peer, turn, room(peer, part), each, past);
    };
    const bool only_reader = (blocks.kept >= 0 || here.size() == 2) && kernel::readers_hold_up_writers();
    const auto hand_back = [&](std::size_t turn) {
        const int first = blocks.kept >= 0 ? rank : 0, last = blocks.kept >= 0 ? rank + 1 : blocks.parts;
        for (int peer = 0; peer < here.size(); ++peer)
            for (int part = first; part < last && peer != rank; ++part)
                if (const auto staged = segment_length(blocks.length(peer, part), turn * each, each) * sizeof(element);
                    here.hands_back(staged))
                    kernel::hand_back(
                        reinterpret_cast<std::byte*>(place(peer, here.announced(peer).past_line, turn, part)), staged);
    };
    const auto stage = [&](std::size_t turn) {
        each_to_stage(turn, [&](int part, std::size_t length) {
            kernel::copy(blocks.in + blocks.first(rank, part) + turn * each,
                         place(rank, here.past_line(blocks.in), turn, part), length, kernel::stores::shared);
        });
    };
    typename memory_call<Transport>::places ours;
    ours.past_line = here.past_line(blocks.in);
    if (each == 0 || bytes >= here.limits().mapped_move) {
        if (publishes) ours.in = here.ranks().address_of(blocks.in, blocks.count * sizeof(element));
        else if (blocks.into != nullptr)
            ours.out = here.ranks().address_of(blocks.into, blocks.longest * sizeof(element));
        if (blocks.in_place != nullptr) ours.out = ours.in;
    }

    const auto in_place = [&](int peer) { return here.announced(peer).in != 0 && here.announced(peer).out != 0; };
    // who is in place writes where the others read
    const auto is_alike = [&] {
        for (int peer = 1; peer < here.size(); ++peer)
            if (in_place(peer) != in_place(0)) return false;
        return true;
    };
    if (here.announce_or_stage(
            ours, publishing, [&] { stage(0); }, is_alike)) {
        here.share([&] {
            if (in_place(rank)) return exchange_in_place(here, blocks);
            if (publishes && blocks.into != nullptr) return bring_part(here, blocks);
            const std::size_t fetched = ours.out != 0 ? fetched_part(here, blocks) : blocks.longest;
            consume(std::size_t{0}, fetched, [&](int peer, int part) {
                const std::size_t first = blocks.first(peer, part);
                return here.template mapped<const element>(peer, here.announced(peer).in,
                                                           first + blocks.length(peer, part)) +
                       first;
            });
        });
        return protocol::mapped;
    }
    std::size_t staged = 0;
    each_to_stage(0, [&](int, std::size_t length) { staged += length * sizeof(element); });
    each_to_stage(0, [&](int part, std::size_t length) {
        if (here.reclaims(staged) && !(only_reader && here.hands_back(length * sizeof(element))))
            here.template reclaim<element>(room(rank, part), each, length);
    });
    // waits are for what is needed alone: who stages, for the readers of the area that it fills again; who reads, for those who stage
    std::uint64_t published = 0;
    for (std::size_t turn = 0; turn * each < blocks.longest; ++turn) {
        const bool goes_on = (turn + 1) * each < blocks.longest;
        if (goes_on && publishes) {
            if (turn + 1 >= here.turns()) here.await(published + 2 - here.turns());
            stage(turn + 1);
        }
        if (turn > 0) here.await(published, [&](int peer) { return blocks.any_of(peer); });
        bool reads = false;
        consume(turn * each, each, [&](int peer, int part) {
            if (peer == rank) return blocks.in + blocks.first(rank, part) + turn * each;
            reads = true;
            return static_cast<const element*>(place(peer, here.announced(peer).past_line, turn, part));
        });
        if (only_reader && reads) hand_back(turn);
        if (goes_on) published = here.publish();
    }
    return protocol::staged;
}

/// Hands the blocks out, in the notices if they are short. The schedule `direct` over memory, for collectives without a
/// second half.
///
/// `consume(begin, count, fetch)` may read up to `count` elements from element `begin` on of each block:
/// `fetch(peer, part)`. Cost: 1 step for short blocks, 2 for mapped ones, else 1 a segment.
template <memory_transport Transport, class Element, class First, class Length, class Consume>
protocol direct_stream(memory_call<Transport>& here, const published_blocks<Element, First, Length>& blocks,
                       const Consume& consume) {
    const std::size_t bytes = blocks.longest * static_cast<std::size_t>(blocks.parts) * sizeof(Element);
    const protocol way = notice::carries<Element>(bytes) ? stream_in_notices(here, blocks, consume)
                         : are_few_lines(here, blocks)   ? stream_few_lines(here, blocks, consume)
                                                         : stream_by_memory(here, blocks, bytes, consume);
    here.end();
    return way;
}

/// Every rank takes copies: `wants(copy)` calls `copy(peer, part, to)` for each block that this rank wants, best in the order of
/// its own, then those of the ranks after it: two ranks that read the same lines at once hold each other up. What
/// all ranks hand out and what they want is `all` elements together.
template <memory_transport Transport, class Element, class First, class Length, class Wants>
protocol direct_move(memory_call<Transport>&& here, const published_blocks<Element, First, Length>& blocks,
                     std::size_t all, const Wants& wants) {
    // in place they go to lines that have just been staged
    const auto how = blocks.in_place != nullptr ? kernel::stores::cached : here.stores_beside(all * sizeof(Element));
    return direct_stream(here, blocks, [&](std::size_t begin, std::size_t most, auto fetch) {
        wants([&](int peer, int part, Element* to) {
            if (const auto length = segment_length(blocks.length(peer, part), begin, most); length != 0)
                kernel::copy(fetch(peer, part), to + begin, length, how);
        });
        kernel::settle(how);
    });
}

/// Rank `r` folds part `r` of all ranks, in rank order, into its `out`: a reduce-scatter. All parts of one number are of
/// equal length on all ranks.
template <memory_transport Transport, class Element, class First, class Length, class Op>
protocol direct_fold_blocks(memory_call<Transport>&& here, const published_blocks<Element, First, Length>& blocks,
                            Element* out, const Op& op) {
    const int rank = here.rank();
    return direct_stream(here, blocks, [&](std::size_t begin, std::size_t most, auto fetch) {
        if (const auto length = segment_length(blocks.length(rank, rank), begin, most); length != 0)
            kernel::fold([&](int peer) { return fetch(peer, rank); }, here.size(), out + begin, length, op,
                         here.size());
    });
}

}  // namespace ddl
