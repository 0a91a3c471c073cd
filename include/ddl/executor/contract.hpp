// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/message_lanes.hpp>
#include <ddl/executor/message_wait.hpp>
#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/schedule/recursive_doubling.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

namespace ddl {

/// What a rank says of a call first, before any payload.
struct alignas(16) contract_head {
    std::uint64_t call;  // its fingerprint
    std::uint32_t differ;
    std::uint32_t carries;
};

/// The longest payload that travels with a contract, and that of `wire`, which cuts no contract.
inline constexpr std::size_t contract_bytes = 8192;
template <class Transport>
constexpr std::size_t contract_room(const Transport& wire) noexcept {
    const std::size_t shortest = cut_of(wire).short_bytes;
    if (shortest == 0 || shortest > contract_bytes) return contract_bytes;
    return shortest > sizeof(contract_head) ? shortest - sizeof(contract_head) : 0;
}

/// What the calls of some ranks have in common, and where they first differ. Folds like an operand.
struct agreement {
    call first;            // of the lowest rank
    call other;            // of the lowest rank that does not agree with it
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
    void differ_from(const call& theirs, std::int32_t rank) noexcept {
        const bool matters = differs < 0 || (theirs.what == collective::staged && other.what != collective::staged);
        if (!matters || theirs.agrees(first)) return;
        other = theirs;
        differs = rank;
    }
};

/// What a message of a contract holds: what ranks below or above those that we know of say, or what all do.
enum class testimony { below, above, all };

/// Exchanges messages by recursive doubling, whatever the call's own schedule, so that ranks which disagree still meet.
///
/// `fill(out)` writes the next message and returns its bytes: a head of `head`, and a body of at most `body`, which begins at
/// a cache line. `take(in, of)` is handed each arrival.
template <message_transport Transport, class Fill, class Take>
void exchange_contracts(Transport& wire, call_site where, std::size_t head, std::size_t body, Fill fill, Take take) {
    const int tag = static_cast<int>(message_tag::contract);
    const int rank = wire.rank();
    const auto program = allreduce_program<recursive_doubling>(wire.size());
    const std::size_t before = whole_lines(head);
    const std::size_t each = before + whole_lines(body);
    std::byte* const outgoing = wire.scratch(2 * each) + before - head;
    std::byte* const incoming = outgoing + each;
    for (int round = 0; round < program.rounds(); ++round) {
        where.round = round;
        std::optional<pending_message<Transport>> sent;
        std::optional<pending_message<Transport>> received;
        testimony of = testimony::all;
        for (const bool sends : {false, true})  // what is awaited on arrival need not be put by
            for (int i = 0, width = program.width(rank, round); i < width; ++i) {
                const transfer t = program.at(rank, round, i);
                if ((t.what == action::send) != sends) continue;
                if (sends) {
                    const std::size_t bytes = fill(outgoing);
                    sent.emplace(wire, t.peer, wire.send(t.peer, outgoing, bytes, tag));
                } else {
                    // a peer that disagrees may bring more or less than we do
                    received.emplace(wire, t.peer, wire.receive(t.peer, incoming, head + body, tag));
                    if (t.what == action::receive_reduce) of = t.peer < rank ? testimony::below : testimony::above;
                }
            }
        if (received) received->complete(where);
        if (sent) sent->complete(where);
        if (received) take(static_cast<const std::byte*>(incoming), of);
    }
}

/// Joins what all ranks say of a call. All ranks call it; the result is the same on every one.
template <message_transport Transport>
agreement join_agreements(Transport& wire, agreement known, const call_site& where) {
    exchange_contracts(
        wire, where, sizeof known, 0,
        [&](std::byte* out) {
            std::memcpy(out, &known, sizeof known);
            return sizeof known;
        },
        [&](const std::byte* in, testimony of) {
            agreement theirs;
            std::memcpy(&theirs, in, sizeof theirs);
            if (of == testimony::below) std::swap(theirs, known);
            if (of == testimony::all) known = theirs;
            else known.join(theirs);
        });
    return known;
}

/// Compares what all ranks call, and throws on all of them if they differ.
///
/// A short payload travels in the same messages: then the contract is the collective, and costs no message more. `payload`
/// is sent as it stands at that time, if the rank `carries` one; arrivals are folded into it by `join(side, arrived)`, but
/// only while all calls agree.
template <message_transport Transport, class Join>
void compare_calls(Transport& wire, const call& ours, const call_site& where, std::byte* payload, std::size_t bytes,
                   bool carries, Join join) {
    contract_head known{fingerprint(ours), 0, carries ? 1U : 0U};
    exchange_contracts(
        wire, where, sizeof known, contract_bytes,
        [&](std::byte* out) {
            const std::size_t carried = known.carries != 0 && known.differ == 0 ? bytes : 0;
            std::memcpy(out, &known, sizeof known);
            kernel::copy(static_cast<const std::byte*>(payload), out + sizeof known, carried);
            return sizeof known + carried;
        },
        [&](const std::byte* in, testimony of) {
            contract_head theirs;
            std::memcpy(&theirs, in, sizeof theirs);
            if (theirs.call != known.call || theirs.differ != 0) known.differ = 1;
            if (known.differ == 0 && theirs.carries != 0) {
                const std::byte* const arrived = in + sizeof theirs;
                if (known.carries != 0 && of != testimony::all)
                    join(of == testimony::below ? kernel::side::left : kernel::side::right, arrived);
                else kernel::copy(arrived, payload, bytes);
            }
            known.carries |= theirs.carries;
        });
    // all ranks know that some differ: now they can say what they call
    if (known.differ != 0)
        join_agreements(wire, {ours, ours, wire.rank(), -1}, where).throw_if_differs(ours, wire.rank());
}
template <message_transport Transport>
void compare_calls(Transport& wire, const call& ours, const call_site& where) {
    compare_calls(wire, ours, where, nullptr, 0, false, [](kernel::side, const std::byte*) {});
}

}  // namespace ddl
