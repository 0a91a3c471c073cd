// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/message_wait.hpp>
#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/schedule/recursive_doubling.hpp>

#include <cstddef>
#include <optional>

namespace ddl {

/// The longest payload that travels with a contract.
inline constexpr std::size_t contract_bytes = 8192;

/// What the calls of some ranks have in common, and where they first differ. Folds like an operand.
struct agreement {
    call first;            // of the lowest rank
    call other;            // of the lowest rank that does not agree with it
    std::int32_t lowest;   // that first rank
    std::int32_t differs;  // that other rank, -1 if all agree
    std::int32_t carries;  // whether a payload follows
    std::int32_t unused;

    /// Joins the ranks of `above`, which lie behind ours, to ours.
    void join(const agreement& above) noexcept {
        if (differs >= 0) return;
        if (!above.first.agrees(first)) {
            other = above.first;
            differs = above.lowest;
        } else if (above.differs >= 0) {
            other = above.other;
            differs = above.differs;
        }
    }

    /// The mismatch, if there is one, in the words of a rank.
    void throw_if_differs(const call& what, int rank) const {
        if (differs < 0) return;
        if (what.agrees(first)) throw mismatch(what, rank, other, differs);
        throw mismatch(what, rank, first, lowest);
    }
};

/// Joins what all ranks say of a call, by recursive doubling whatever the call's own schedule, so that ranks which disagree
/// still meet. The result is the same on every rank.
///
/// A short payload travels in the same messages: then the contract is the collective, and costs no message more. `payload`
/// is sent as it stands at that time, if `known.carries`; arrivals are folded into it by `join(side, arrived)`, but only
/// while all calls agree.
template <message_transport Transport, class Join>
agreement join_agreements(Transport& wire, agreement known, call_site where, std::byte* payload, std::size_t bytes,
                          Join join) {
    const int tag = static_cast<int>(message_tag::contract);
    const int rank = wire.rank();
    const auto program = allreduce_program<recursive_doubling>(wire.size());

    struct envelope {
        agreement head;
        alignas(16) std::byte body[contract_bytes];
    };
    auto* const outgoing = reinterpret_cast<envelope*>(wire.scratch(2 * sizeof(envelope)));
    auto* const incoming = outgoing + 1;
    for (int round = 0; round < program.rounds(); ++round) {
        where.round = round;
        std::optional<pending_message<Transport>> sent;
        std::optional<pending_message<Transport>> received;
        action arrival = action::send;
        for (int i = 0, width = program.width(rank, round); i < width; ++i) {
            const transfer t = program.at(rank, round, i);
            if (t.what == action::send) {
                outgoing->head = known;
                const std::size_t carried = known.carries != 0 && known.differs < 0 ? bytes : 0;
                kernel::copy(static_cast<const std::byte*>(payload), outgoing->body, carried);
                sent.emplace(wire, t.peer, wire.send(t.peer, outgoing, offsetof(envelope, body) + carried, tag));
            } else {
                // a peer that disagrees may bring more or less than we do
                received.emplace(wire, t.peer, wire.receive(t.peer, incoming, sizeof(envelope), tag));
                arrival = t.what;
            }
        }
        if (received) received->complete(where);
        if (sent) sent->complete(where);
        if (arrival == action::send) continue;
        const agreement& theirs = incoming->head;
        const bool lower = theirs.lowest < known.lowest;
        agreement joined = arrival == action::receive || lower ? theirs : known;
        if (arrival != action::receive) joined.join(lower ? known : theirs);
        if (joined.differs < 0 && theirs.carries != 0) {
            if (known.carries != 0 && arrival != action::receive)
                join(lower ? kernel::side::left : kernel::side::right, static_cast<const std::byte*>(incoming->body));
            else kernel::copy(static_cast<const std::byte*>(incoming->body), payload, bytes);
        }
        joined.carries = known.carries | theirs.carries;
        known = joined;
    }
    return known;
}

}  // namespace ddl
