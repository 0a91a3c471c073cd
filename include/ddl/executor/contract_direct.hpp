// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/agreement.hpp>
#include <ddl/executor/contract_message.hpp>
#include <ddl/executor/contract_room.hpp>
#include <ddl/kernel/copy.hpp>

#include <bit>
#include <cstddef>

// Contracts of few ranks, of which each hears all others at once.
namespace ddl {

/// Throws on all ranks, for some differ, as all have heard: now they can say what they call.
template <message_transport Transport>
void throw_mismatch(Transport& wire, const call& ours, const call_site& where) {
    join_agreements(wire, {ours, ours, wire.rank(), -1}, where).throw_if_differs(ours, wire.rank());
}

/// Compares what all ranks call, and throws on all of them if they differ. Each sends `leaving(peer)` to every other, and what
/// that sends is in `room.arrival(peer)` then.
///
/// Ranks that compare in rounds meanwhile are met all the same: once they have heard that calls differ they send what a rank
/// awaits that waits for all (`meet_others`).
///
/// Cost: 1 step, `p - 1` messages a rank. Where ranks share cores another step is a switch of ranks, which takes longer than a
/// few messages do.
template <message_transport Transport, class Leaving>
void compare_directly(Transport& wire, const call& ours, std::uint64_t print, const call_site& where,
                      const contract_room& room, const Leaving& leaving) {
    using messages = pending_messages<Transport, most_direct_ranks - 1>;
    const contract_message first{wire, true};
    const contract_head says{print, 0, 0};
    const int rank = wire.rank();
    const int size = wire.size();
    messages received{wire};
    messages sent{wire};
    for (int distance = 1; distance < size;
         ++distance) {  // several messages need not be put by if they are awaited on arrival
        const int peer = wrap(rank - distance, size);
        received.add(peer, first.receive(wire, peer, room.arrival(peer)));
    }
    const std::byte* body = nullptr;
    for (int distance = 1; distance < size; ++distance) {
        const int peer = wrap(rank + distance, size);
        const riding_part part = leaving(peer);
        if (part.body != body) first.put(part.body, says);
        body = part.body;
        sent.add(peer, first.send_put(wire, peer, part.body, says, part.bytes));
    }
    bool differ = false;
    bool heard[most_direct_ranks] = {};
    message_wait<Transport> waiting{wire, where};
    // in whatever order they come: one that differs may send another pieces, and go on only when they are taken
    for (int left = size - 1; left > 0;) {
        bool any = false;
        int silent = -1;
        for (int distance = 1; distance < size; ++distance) {
            const auto index = static_cast<std::size_t>(distance - 1);
            if (heard[index]) continue;
            const int peer = wrap(rank - distance, size);
            if (!received.has_ended(index)) {
                silent = peer;
                continue;
            }
            heard[index] = any = true;
            --left;
            const contract_head theirs = first.read(wire, received[index], room.arrival(peer), print);
            if (theirs.call != print || theirs.differ != 0) differ = true;
            if (theirs.pieces > 0) [[unlikely]]
                discard_pieces(wire, peer, theirs.pieces, room.other, where);
        }
        if (any) waiting.restart();
        else waiting.pause(silent);
    }
    sent.complete(where);
    if (differ) [[unlikely]]
        throw_mismatch(wire, ours, where);
}

/// Folds the operands of all ranks as recursive doubling does, so that a result has the same bits. `join` as `compare_calls`
/// takes it. Where the result is: in the place of an operand.
template <class Join>
std::byte* fold_as_by_doubling(const contract_room& room, int size, std::size_t bytes, const Join& join) {
    const auto into_right = [&](std::byte* left, std::byte* right) {
        join(testimony::above, left, right, bytes);
        return right;
    };
    std::byte* parts[most_direct_ranks];
    const int places = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
    for (int place = 0, rank = 0; place < places; ++place) {
        parts[place] = room.arrival(rank++);
        if (place < size - places) parts[place] = into_right(parts[place], room.arrival(rank++));
    }
    for (int distance = 1; distance < places; distance *= 2)
        for (int place = 0; place < places; place += 2 * distance)
            parts[place] = into_right(parts[place], parts[place + distance]);
    return parts[0];
}

/// Compares calls so, and moves a payload on the way. Where what is left of it is, on ranks where it flows to.
template <message_transport Transport, class Join>
const std::byte* carry_directly(Transport& wire, const call& ours, std::uint64_t print, const call_site& where,
                                const contract_room& room, const contract_load& load, const Join& join) {
    const int rank = wire.rank();
    const bool gives = load.way != flow::from_root || rank == load.root;
    const riding_part all{room.arrival(rank), gives ? load.cut.bytes : 0};
    if (gives) kernel::copy(load.payload, all.body, all.bytes);  // who gives up has its buffer back
    compare_directly(wire, ours, print, where, room, [&](int peer) {
        return load.way != flow::to_root || peer == load.root ? all : riding_part{all.body, 0};
    });
    if (load.way == flow::from_root) return room.arrival(load.root);
    if (load.way == flow::to_root && rank != load.root) return all.body;
    return load.cut.bytes == 0 ? all.body : fold_as_by_doubling(room, wire.size(), load.cut.bytes, join);
}

/// Sends to the ranks that the rounds of a contract did not meet, and awaits theirs: one that compares directly has sent to all,
/// and waits for all. Every rank that compares in rounds calls it if some differ, of which all of those have heard.
template <message_transport Transport>
void meet_others(Transport& wire, call_site where) {
    const contract_message first{wire, true};
    const contract_room room{wire, 0};
    const int rank = wire.rank();
    const int size = wire.size();
    bool sent_to[most_direct_ranks] = {};
    bool heard_from[most_direct_ranks] = {};
    for (int round = 0; round < contract_round::count(size); ++round) {
        const contract_round peers{rank, size, round};
        if (peers.to >= 0) sent_to[peers.to] = true;
        if (peers.from >= 0) heard_from[peers.from] = true;
    }
    pending_messages<Transport, most_direct_ranks> received{wire};
    pending_messages<Transport, most_direct_ranks> sent{wire};
    const contract_head says{0, 1, 0};
    first.put(room.own, says);
    for (int peer = 0; peer < size; ++peer) {
        if (peer != rank && !heard_from[peer]) received.add(peer, first.receive(wire, peer, room.arrival(peer)));
        if (peer != rank && !sent_to[peer]) sent.add(peer, first.send_put(wire, peer, room.own, says, 0));
    }
    received.complete(where);
    sent.complete(where);
}

}  // namespace ddl
