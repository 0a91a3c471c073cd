// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/contract_load.hpp>
#include <ddl/executor/message_lanes.hpp>
#include <ddl/executor/message_wait.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/schedule/recursive_doubling.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

namespace ddl {

/// What the calls of some ranks have in common, and where they first differ. Folds like an operand.
struct agreement {
    call_record first;     // of the lowest rank
    call_record other;     // of the lowest rank that does not agree with it
    std::int32_t lowest;   // that first rank
    std::int32_t differs;  // that other rank, -1 if all agree

    /// Joins the ranks of `above`, which lie behind ours, to ours.
    void join(const agreement& above) noexcept {
        differ_from(above.first, above.lowest);
        if (above.differs >= 0) differ_from(above.other, above.differs);
    }

    /// The mismatch, if there is one, in the words of a rank.
    void throw_if_differs(const call& what, int rank) const {
        if (differs < 0) return;
        if (what.agrees(first) || other.what == collective::staged) throw mismatch(what, rank, other, differs);
        throw mismatch(what, rank, first, lowest);
    }

private:
    /// The first that differs is the one to tell of, but for one that all must hear of.
    void differ_from(const call_record& theirs, std::int32_t rank) noexcept {
        const bool matters = differs < 0 || (theirs.what == collective::staged && other.what != collective::staged);
        if (!matters || theirs.agrees(first)) return;
        other = theirs;
        differs = rank;
    }
};

/// What a message of a contract holds: what ranks below or above those that we know of say, or what all do.
enum class testimony { below, above, all };

/// A round of a contract as a rank sees it: whom it sends to and hears from, -1 for nobody.
///
/// Contracts go by recursive doubling, whatever the call's own schedule, so that ranks which disagree still meet.
struct contract_round {
    int to = -1;
    int from = -1;
    testimony of = testimony::all;

    static constexpr int count(int size) noexcept { return allreduce_program<recursive_doubling>(size).rounds(); }

    contract_round(int rank, int size, int round) noexcept {
        const auto program = allreduce_program<recursive_doubling>(size);
        for (int i = 0, width = program.width(rank, round); i < width; ++i) {
            const transfer t = program.at(rank, round, i);
            (t.what == action::send ? to : from) = t.peer;
            if (t.what == action::receive_reduce) of = t.peer < rank ? testimony::below : testimony::above;
        }
    }
};

/// Joins what all ranks say of a call. All ranks call it; the result is the same on every one.
template <message_transport Transport>
agreement join_agreements(Transport& wire, agreement known, call_site where) {
    constexpr message_tag tag = message_tag::agreement;  // with the other one a rank may still await payload
    for (int round = 0; round < contract_round::count(wire.size()); ++round) {
        where.round = round;
        const contract_round peers{wire.rank(), wire.size(), round};
        agreement theirs;
        pending_messages<Transport, 1> received{wire};
        pending_messages<Transport, 1> sent{wire};
        if (peers.from >= 0) received.receive(peers.from, reinterpret_cast<std::byte*>(&theirs), sizeof theirs, tag);
        if (peers.to >= 0) sent.send(peers.to, reinterpret_cast<const std::byte*>(&known), sizeof known, tag);
        received.complete(where);
        sent.complete(where);
        if (peers.from < 0) continue;
        if (peers.of == testimony::below) std::swap(theirs, known);
        if (peers.of == testimony::all) known = theirs;
        else known.join(theirs);
    }
    return known;
}

/// Scratch of a contract: two messages, of which one is sent while the other arrives. A head lies before its body. Bodies lie
/// half a page apart, modulo pages: a fold is slow where it stores just above what it loads. What a rank sends whose call is
/// another may be longer than expected.
struct contract_room {
    static constexpr std::size_t alignment = 64;  // of bodies

    std::byte* own;  // bodies
    std::byte* other;

    template <class Transport>
    contract_room(Transport& wire, std::size_t bytes) {
        constexpr std::size_t page = 4096;
        constexpr std::size_t before = whole_lines(sizeof(contract_head));
        const std::size_t body = (bytes > longest_rider ? bytes : longest_rider) + longest_load;
        const std::size_t message = (before + body + page - 1) / page * page + page / 2;
        own = wire.scratch(2 * message) + before;
        other = own + message;
    }
};

/// Takes a piece of a payload that is not wanted.
template <message_transport Transport>
void discard_message(Transport& wire, int peer, std::byte* room, const call_site& where) {
    pending_messages<Transport, 1> unwanted{wire};
    unwanted.receive(peer, room, longest_load, message_tag::contract);
    unwanted.complete(where);
}

/// Compares what all ranks call, and throws on all of them if they differ.
///
/// A payload travels with the same messages. `join(of, ours, arrived, bytes)` folds ours into what has arrived of it, but only
/// while all calls agree. Returns where what is left of it is at last: in scratch, or where it was.
template <message_transport Transport, class Load, class Join>
const std::byte* compare_calls(Transport& wire, const call& ours, call_site where, contract_room room, const Load& load,
                               const Join& join) {
    constexpr message_tag tag = message_tag::contract;
    using messages = pending_messages<Transport, 1 + load_cut::most_pieces>;
    const int rank = wire.rank();
    const int size = wire.size();
    contract_head known{fingerprint(ours), 0, 0};
    const std::byte* payload = load.payload;  // what is left of it
    for (int round = 0, rounds = contract_round::count(size); round < rounds; ++round) {
        where.round = round;
        const contract_round peers{rank, size, round};
        const bool gives = known.differ == 0 && load.moves(rank, peers.to, round, size);
        bool takes = known.differ == 0 && load.moves(peers.from, rank, round, size);
        const load_part given = load.given(rank, round);
        const load_part kept = load.kept(rank, round);
        const bool rides = given.cut.pieces == 0;
        messages received{wire};
        messages sent{wire};
        const auto await = [&] {
            if (peers.from < 0) return;
            // only a mismatch fills more than it should
            received.receive(peers.from, room.other - sizeof known, sizeof known + longest_rider, tag);
            for (std::size_t i = 0; takes && i < kept.cut.pieces; ++i)
                received.receive(peers.from, room.other + i * kept.cut.piece, longest_load, tag);
        };
        // several messages need not be put by if they are awaited on arrival; one had better leave first
        if (!rides) await();
        if (peers.to >= 0) {
            // from scratch: who gives up has its buffer back, and MPI cannot take a message back. Parts of a longer vector leave
            // from where they are, as they do when nothing is compared
            if (gives && !Load::in_parts && payload != room.own) {
                kernel::copy(payload, room.own, given.cut.bytes);
                payload = room.own;
            }
            const std::byte* const leaving = payload + given.first;
            known.pieces = gives ? static_cast<std::uint32_t>(given.cut.pieces) : 0;
            std::construct_at(reinterpret_cast<contract_head*>(room.own - sizeof known), known);
            sent.send(peers.to, room.own - sizeof known, sizeof known + (gives && rides ? given.cut.bytes : 0), tag);
            for (std::size_t i = 0; i < known.pieces; ++i)
                sent.send(peers.to, leaving + i * given.cut.piece, given.cut.length(i), tag);
        }
        if (rides) await();
        if (peers.from >= 0) {
            received.complete(1, where);
            contract_head theirs;
            std::memcpy(&theirs, room.other - sizeof theirs, sizeof theirs);
            if (theirs.call != known.call || theirs.differ != 0) known.differ = 1;
            takes = takes && known.differ == 0;
            const std::byte* const own = payload + kept.first;
            if (takes && rides) join(peers.of, own, room.other, kept.cut.bytes);
            // a rank that differs sends fewer pieces than we await, which are given up, or more, which nobody wants
            for (std::size_t i = 0, at = 0; i < theirs.pieces; ++i, at += kept.cut.piece) {
                if (i + 1 < received.count()) received.complete(i + 2, where);
                else discard_message(wire, peers.from, room.other + kept.cut.bytes, where);
                if (takes) join(peers.of, own + at, room.other + at, kept.cut.length(i));
            }
        }
        sent.complete(where);
        if (!takes) continue;
        payload = room.other;
        std::swap(room.own, room.other);
    }
    // all ranks know that some differ: now they can say what they call
    if (known.differ != 0)
        join_agreements(wire, {ours, ours, wire.rank(), -1}, where).throw_if_differs(ours, wire.rank());
    // who gave up on this call said so, perhaps after all that others need had left it: they are not to think that it went well.
    // Where parts are still to be gathered, they hear of it then
    else if (!Load::in_parts && load.given(rank, 0).cut.bytes > longest_rider) wire.listen(where);
    return payload;
}
template <message_transport Transport>
void compare_calls(Transport& wire, const call& ours, const call_site& where) {
    compare_calls(wire, ours, where, {wire, 0}, contract_load{},
                  [](testimony, const std::byte*, std::byte*, std::size_t) {});
}

}  // namespace ddl
