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

/// Calls differ: of two ranks that mark messages each says how many pieces it has sent behind its mark. This one has sent `ours`.
template <message_transport Transport>
std::size_t pieces_behind_mark_of_peer(Transport& wire, std::size_t ours, const call_site& where) {
    std::size_t theirs = 0;
    if (!is_marked_pair(wire)) return theirs;
    constexpr message_tag tag = message_tag::agreement;
    pending_messages<Transport, 2> counts{wire};
    counts.receive(1 - wire.rank(), reinterpret_cast<std::byte*>(&theirs), sizeof theirs, tag);
    counts.send(1 - wire.rank(), reinterpret_cast<const std::byte*>(&ours), sizeof ours, tag);
    counts.complete(where);
    return theirs;
}

/// Throws on all ranks, for some differ, as all have heard, and nothing is on its way: now they can say what they call.
template <message_transport Transport>
void throw_difference(Transport& wire, const call& ours, const call_site& where) {
    join_agreements(wire, {ours, ours, wire.rank(), -1}, where).throw_if_differs(ours, wire.rank());
}
/// The same where a peer may have sent pieces behind its mark, and this rank has sent none.
template <message_transport Transport>
void throw_mismatch(Transport& wire, const call& ours, const call_site& where) {
    if (const std::size_t theirs = pieces_behind_mark_of_peer(wire, 0, where); theirs > 0)
        discard_pieces(wire, 1 - wire.rank(), theirs, contract_room{wire, 0}.other, where, message_tag::behind_mark);
    throw_difference(wire, ours, where);
}

/// What ranks say of a call that each tells all others at once, as this one hears it.
template <message_transport Transport>
class direct_heads {
public:
    /// Awaits the heads of all: before any is sent, for several messages need not be put by if they are awaited on arrival.
    direct_heads(Transport& wire, std::uint64_t print, const contract_room& room)
        : wire_{wire}, print_{print}, room_{room}, received_{wire} {
        for (int distance = 1; distance < wire.size(); ++distance) {
            const int peer = wrap(wire.rank() - distance, wire.size());
            received_.add(peer, first_.receive(wire, peer, room.arrival(peer)));
        }
    }
    const contract_message<Transport>& first() const noexcept { return first_; }

    /// Whether all say what this rank says, once all have been heard, in whatever order they come: one that differs may send another
    /// pieces, and go on only when they are taken. They are, and so are those of ranks that agree, once it is known that some do not.
    bool agree(const call_site& where) {
        bool heard[most_direct_ranks] = {};
        std::size_t follow[most_direct_ranks] = {};  // pieces that are not taken yet
        bool differ = false;
        const int size = wire_.size();
        message_wait<Transport> waiting{wire_, where};
        for (int left = size - 1; left > 0;) {
            bool any = false;
            int silent = -1;
            for (int distance = 1; distance < size; ++distance) {
                const auto index = static_cast<std::size_t>(distance - 1);
                if (heard[index]) continue;
                const int peer = wrap(wire_.rank() - distance, size);
                if (!received_.has_ended(index)) {
                    silent = peer;
                    continue;
                }
                heard[index] = any = true;
                --left;
                const contract_head theirs = first_.read(wire_, received_[index], room_.arrival(peer), print_);
                if (theirs.call == print_ && theirs.differ == 0) {
                    follow[index] = theirs.pieces;
                    continue;
                }
                differ = true;
                discard_pieces(wire_, peer, theirs.pieces, room_.other, where);
            }
            if (any) waiting.restart();
            else waiting.pause(silent);
        }
        for (int distance = 1; distance < size && differ; ++distance)
            discard_pieces(wire_, wrap(wire_.rank() - distance, size), follow[distance - 1], room_.other, where);
        return !differ;
    }

private:
    Transport& wire_;
    std::uint64_t print_;
    const contract_room& room_;
    contract_message<Transport> first_{wire_, true};
    pending_messages<Transport, most_direct_ranks - 1> received_;
};

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
    const contract_head says{print, 0, 0};
    direct_heads<Transport> heads{wire, print, room};
    pending_messages<Transport, most_direct_ranks - 1> sent{wire};
    const std::byte* body = nullptr;
    for (int distance = 1; distance < wire.size(); ++distance) {
        const int peer = wrap(wire.rank() + distance, wire.size());
        const riding_part part = leaving(peer);
        if (part.body != body) heads.first().put(part.body, says);
        body = part.body;
        sent.add(peer, heads.first().send_put(wire, peer, part.body, says, part.bytes));
    }
    const bool agree = heads.agree(where);
    sent.complete(where);
    if (!agree) [[unlikely]]
        throw_mismatch(wire, ours, where);
}

/// Pieces of a block that a rank may send behind its head.
inline constexpr std::size_t most_block_pieces = 8;

/// Whether blocks cut so can follow heads: any rank that awaits something else has room for their pieces.
constexpr bool blocks_follow(int ranks, const load_cut& block) noexcept {
    return ranks > 2 && ranks <= most_direct_ranks && block.pieces > 0 && block.pieces <= most_block_pieces &&
           block.piece <= longest_message;
}

/// Compares calls so, and sends `outgoing(peer)`, a block cut as `gives` says, to every other rank right behind its head. What
/// comes, cut as `takes(peer)` says, goes to `incoming(peer)` once all agree: where they do not, nothing is written.
/// `guarded(act)` does `act()`, from which on ranks depend on each other's payload.
///
/// Cost: 1 step, `p - 1` messages and as many blocks a rank. The comparison takes no step of its own, as it does before an exchange.
template <message_transport Transport, class Outgoing, class Takes, class Incoming, class Guarded>
void exchange_behind_heads(Transport& wire, const call& ours, std::uint64_t print, const call_site& where,
                           const contract_room& room, const load_cut& gives, const Outgoing& outgoing,
                           const Takes& takes, const Incoming& incoming, const Guarded& guarded) {
    using messages = pending_messages<Transport, (most_direct_ranks - 1) * (1 + most_block_pieces)>;
    constexpr message_tag tag = message_tag::contract;
    const contract_head says{print, 0, static_cast<std::uint32_t>(gives.pieces)};
    const auto each_peer = [&](int way, const auto& act) {
        for (int distance = 1; distance < wire.size(); ++distance) act(wrap(wire.rank() + way * distance, wire.size()));
    };
    direct_heads<Transport> heads{wire, print, room};
    messages leaving{wire};
    heads.first().put(room.own, says);
    each_peer(1, [&](int peer) { leaving.add(peer, heads.first().send_put(wire, peer, room.own, says, 0)); });
    each_peer(1, [&](int peer) {
        for (std::size_t i = 0; i < gives.pieces; ++i)
            leaving.send(peer, outgoing(peer) + i * gives.piece, gives.length(i), tag);
    });
    if (!heads.agree(where)) [[unlikely]] {
        leaving.complete(where);
        throw_mismatch(wire, ours, where);
    }
    guarded([&] {
        messages coming{wire};
        each_peer(-1, [&](int peer) {
            const load_cut cut = takes(peer);
            for (std::size_t i = 0; i < cut.pieces; ++i)
                coming.receive(peer, incoming(peer) + i * cut.piece, cut.length(i), tag);
        });
        coming.complete(where);
        leaving.complete(where);
        wire.listen(where);  // whoever gave up after its block had left has said so
    });
}

/// Folds the operands of all ranks as recursive doubling does, so that a result has the same bits. `join` as `compare_calls`
/// takes it. Where the result is: in the place of an operand.
template <class Join>
std::byte* fold_as_by_doubling(const contract_room& room, int size, std::size_t bytes, const Join& join) {
    const auto into_right = [&](std::byte* left, std::byte* right) {
        join(testimony::above, left, right, right, bytes);
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
    int from[most_direct_ranks] = {};
    for (int peer = 0; peer < size; ++peer) {
        if (peer != rank && !heard_from[peer]) {
            from[received.count()] = peer;
            received.add(peer, first.receive(wire, peer, room.arrival(peer)));
        }
        if (peer != rank && !sent_to[peer]) sent.add(peer, first.send_put(wire, peer, room.own, says, 0));
    }
    for (std::size_t i = 0; i < received.count(); ++i) {
        received.complete(i + 1, where);
        const contract_head theirs = first.read(wire, received[i], room.arrival(from[i]), 0);
        discard_pieces(wire, from[i], theirs.pieces, room.other, where);
    }
    sent.complete(where);
}

}  // namespace ddl
