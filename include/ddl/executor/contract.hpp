// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/agreement.hpp>
#include <ddl/executor/contract_direct.hpp>
#include <ddl/executor/contract_load.hpp>
#include <ddl/executor/contract_message.hpp>
#include <ddl/executor/contract_room.hpp>
#include <ddl/function_view.hpp>
#include <ddl/kernel/copy.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ddl {

/// A payload of which each rank brings an operand of the same length, or one rank brings all. `join(of, ours, arrived, to, bytes)`
/// folds ours and what has arrived.
template <class Join>
struct folded_rider {
    static constexpr bool in_place = false;

    contract_room room;
    const contract_load& load;
    const Join& join;
    const std::byte* payload = load.payload;  // what is left of it

    std::byte* arrival() const noexcept { return room.other; }
    riding_part leaving(const contract_round& peers, int rank, int round, int size) {
        if (!load.moves(rank, peers.to, round, size, peers.close)) return {room.own, 0};
        if (payload != room.own) {  // who gives up has its buffer back, and MPI cannot take a message back
            kernel::copy(payload, room.own, load.cut.bytes);
            payload = room.own;
        }
        return {room.own, load.cut.bytes};
    }
    void take(const contract_round& peers, int rank, int round, int size) {
        if (!load.moves(peers.from, rank, round, size, peers.close)) return;
        join(peers.of, payload, room.other, room.other, load.cut.bytes);
        payload = room.other;
        std::swap(room.own, room.other);
    }
};

/// The rounds of a contract in which a payload, or none, rides. Whether all agree is in `known` then. A rider says what leaves
/// in a round (`leaving`), where what arrives lies (`arrival`), and what becomes of that (`take`); `in_place` says whether that
/// may go where a head is still leaving from.
template <message_transport Transport, class Rider>
[[gnu::always_inline]] inline void ride_along(Transport& wire, contract_head& known, call_site& where, Rider& rider) {
    const contract_message first{wire, true};
    const int rank = wire.rank();
    const int size = wire.size();
    for (int round = 0, rounds = contract_round::count(size); round < rounds; ++round) {
        where.round = round;
        const contract_round peers{rank, size, round, first_pairs(wire)};
        pending_message<Transport> sent{wire};
        // a single message had better leave before ours is awaited
        if (peers.to >= 0) {
            riding_part part{rider.room.own, 0};
            if (known.differ == 0) part = rider.leaving(peers, rank, round, size);
            sent.begin(peers.to, first.send(wire, peers.to, part.body, known, part.bytes));
        }
        if (peers.from >= 0) {
            pending_message<Transport> received{wire, peers.from, first.receive(wire, peers.from, rider.arrival())};
            received.complete(where);
            const contract_head theirs = first.read(wire, received.message(), rider.arrival(), known.call);
            if (theirs.call != known.call || theirs.differ != 0) known.differ = 1;
            if (theirs.pieces > 0) [[unlikely]]
                discard_pieces(wire, peers.from, theirs.pieces, rider.arrival(), where);
            if constexpr (Rider::in_place) sent.complete(where);  // its head may lie where this goes
            if (known.differ == 0) rider.take(peers, rank, round, size);
        }
        sent.complete(where);
    }
}

/// Where what follows in pieces is folded in a round: in the place of what arrives, or of the result, if each rank has heard of all by
/// then, as those of a power of two have in the last one.
template <class Load>
std::byte* fold_target(const Load& load, int round, int size, std::byte* arrived) noexcept {
    const bool is_last = 2 << round == size;
    return is_last && load.result != nullptr ? load.result : arrived;
}

/// The rounds of a contract that pieces of a payload follow. A part of a longer vector that is one piece is the message itself
/// where a mark stands for the head.
template <message_transport Transport, class Load, class Join>
const std::byte* lead_pieces(Transport& wire, contract_head& known, call_site& where, contract_room room,
                             const Load& load, const Join& join) {
    using messages = pending_messages<Transport, 1 + load_cut::most_pieces>;
    const bool may_ride = Load::in_parts && head_bytes(wire) == 0;
    const int rank = wire.rank();
    const int size = wire.size();
    const std::byte* payload = load.payload;
    for (int round = 0, rounds = contract_round::count(size); round < rounds; ++round) {
        where.round = round;
        const contract_round peers{rank, size, round, first_pairs(wire)};
        const bool gives = known.differ == 0 && load.moves(rank, peers.to, round, size, peers.close);
        bool takes = known.differ == 0 && load.moves(peers.from, rank, round, size, peers.close);
        const load_part given = load.given(rank, round);
        const load_part kept = load.kept(rank, round);
        std::byte* const to = fold_target(load, round, size, room.other);
        const bool comes_along = may_ride && kept.cut.pieces == 1;
        const contract_message first{wire, comes_along};
        messages received{wire};
        messages sent{wire};
        // several messages need not be put by if they are awaited on arrival
        if (peers.from >= 0) {
            received.add(peers.from, first.receive(wire, peers.from, room.other));
            for (std::size_t i = 0; takes && !comes_along && i < kept.cut.pieces; ++i)
                received.receive(peers.from, room.other + i * kept.cut.piece, longest_message, message_tag::contract);
        }
        if (peers.to >= 0) {
            // parts of a longer vector leave from where they are, as they do when nothing is compared
            if (gives && !Load::in_parts && payload != room.own) {
                kernel::copy(payload, room.own, given.cut.bytes);
                payload = room.own;
            }
            const std::byte* const leaving = payload + given.first;
            const bool rides = gives && may_ride && given.cut.pieces == 1;
            const std::size_t pieces = gives && !rides ? given.cut.pieces : 0;
            const contract_head says{known.call, known.differ, static_cast<std::uint32_t>(pieces)};
            sent.add(peers.to, rides ? first.send_put(wire, peers.to, leaving, says, given.cut.bytes)
                                     : first.send(wire, peers.to, room.own, says, 0));
            for (std::size_t i = 0; i < pieces; ++i)
                sent.send(peers.to, leaving + i * given.cut.piece, given.cut.length(i), message_tag::contract);
        }
        if (peers.from >= 0) {
            received.complete(1, where);
            const contract_head theirs = first.read(wire, received[0], room.other, known.call);
            if (theirs.call != known.call || theirs.differ != 0) known.differ = 1;
            takes = takes && known.differ == 0;
            const std::byte* const own = payload + kept.first;
            if (takes && comes_along) {
                if (combine_in_step(wire)) sent.complete(where);
                join(peers.of, own, room.other, to, kept.cut.bytes);
            }
            // a rank that differs sends fewer pieces than we await, which are given up, or more, which nobody wants
            const std::size_t awaited = std::min<std::size_t>(theirs.pieces, received.count() - 1);
            for (std::size_t i = 0, at = 0; i < awaited; ++i, at += kept.cut.piece) {
                received.complete(i + 2, where);
                if (takes) join(peers.of, own + at, room.other + at, to + at, kept.cut.length(i));
            }
            discard_pieces(wire, peers.from, theirs.pieces - awaited, room.other + kept.cut.bytes, where);
        }
        sent.complete(where);
        if (!takes) continue;
        payload = to;
        std::swap(room.own, room.other);
    }
    return payload;
}

/// What is made of ours and of what another rank brings, `(whose, ours, arrived, to, bytes)`.
using joining = function_view<void(testimony, const std::byte*, const std::byte*, std::byte*, std::size_t)>;

/// Nothing is joined.
inline constexpr auto no_join = [](testimony, const std::byte*, const std::byte*, std::byte*, std::size_t) {};

/// Throws on all ranks if some differ, of which those that compare in rounds have heard.
template <message_transport Transport>
void throw_if_differs(Transport& wire, const contract_head& known, const call& ours, const call_site& where) {
    if (known.differ == 0) [[likely]]
        return;
    if (wire.size() <= most_direct_ranks) meet_others(wire, where);
    throw_mismatch(wire, ours, where);
}

/// Compares what all ranks call, and throws on all of them if they differ.
///
/// A payload travels with the same messages. `join(of, ours, arrived, to, bytes)` folds ours and what has arrived of it, but only
/// while all calls agree. Returns where what is left of it is at last: in scratch, where it was, or where the load wants its result.
template <message_transport Transport, class Load, class Join>
[[gnu::always_inline]] inline const std::byte* compare_calls(Transport& wire, const call& ours, std::uint64_t print,
                                                             call_site where, const contract_room& room,
                                                             const Load& load, const Join& join) {
    if constexpr (!Load::in_parts)
        if (load.cut.direct) return carry_directly(wire, ours, print, where, room, load, join);
    contract_head known{print, 0, 0};
    const std::byte* payload = nullptr;
    const auto lead = [&] { payload = lead_pieces(wire, known, where, room, load, join); };
    if constexpr (Load::in_parts) lead();
    else if (load.cut.pieces > 0) lead();
    else {
        folded_rider<Join> rider{room, load, join};
        ride_along(wire, known, where, rider);
        payload = rider.payload;
    }
    throw_if_differs(wire, known, ours, where);
    // who gave up on this call said so, perhaps after all that others need had left it: they are not to think that it went well.
    // Where parts are still to be gathered, they hear of it then
    if (!Load::in_parts && load.given(wire.rank(), 0).cut.bytes > longest_rider) wire.listen(where);
    return payload;
}

/// The same with a rider of another kind, all of whose payload rides.
template <message_transport Transport, class Rider>
void compare_and_ride(Transport& wire, const call& ours, std::uint64_t print, call_site where, Rider& rider) {
    contract_head known{print, 0, 0};
    ride_along(wire, known, where, rider);
    throw_if_differs(wire, known, ours, where);
}

/// The same without a payload.
template <message_transport Transport>
void compare_calls(Transport& wire, const call& ours, const call_site& where) {
    const load_cut nothing = load_cut::none(wire);
    compare_calls(wire, ours, fingerprint(ours), where, {wire, 0}, contract_load{nothing}, no_join);
}

}  // namespace ddl
