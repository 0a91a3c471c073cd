// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/message_wait.hpp>
#include <ddl/schedule/nearer.hpp>
#include <ddl/schedule/recursive_doubling.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
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
/// Contracts in rounds go by recursive doubling, whatever the call's own schedule, so that ranks which disagree still meet. Those of
/// a power of two may begin `halves_apart`; then what is joined does not lie side by side.
struct contract_round {
    int to = -1;
    int from = -1;
    testimony of = testimony::all;
    nearer close;  // with whom all of them begin

    static constexpr int count(int size) noexcept { return recursive_doubling::rounds(size); }

    [[gnu::always_inline]] contract_round(int rank, int size, int round, nearer first = nearer::neighbours) noexcept
        : close{first} {
        if (std::has_single_bit(static_cast<unsigned>(size))) {  // the same at once
            to = from = rank ^ distance_of_pairs(size, round, close);
            of = to < rank ? testimony::below : testimony::above;
            return;
        }
        const auto transfers = recursive_doubling::round(rank, size, round);
        for (int i = 0; i < transfers.size(); ++i) {
            const transfer& t = transfers[i];
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

}  // namespace ddl
