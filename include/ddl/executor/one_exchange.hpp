// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract_direct.hpp>
#include <ddl/executor/message_call.hpp>
#include <ddl/executor/over_contract.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/kernel/fold.hpp>

#include <algorithm>
#include <cstddef>

// The collectives of two ranks whose payload is short: each sends the other a message under the mark of its call, and that is all, but for
// pieces of what does not fit it.
//
// It is what the rounds of a contract come to, without what only more ranks, longer payload, or heads take: the instructions between a
// call and MPI, which a short call is slow by, are half as many. Nor is what leaves copied: such a message mostly has left when MPI
// has taken it. If it has not when a rank gives up, its bytes must stay until MPI ends, as those of long vectors must.
namespace ddl {

/// The longest payload of which what does not fit under the mark follows in pieces, which are awaited all at once; in bytes.
inline constexpr std::size_t longest_behind_mark = std::size_t{16} << 10;
inline constexpr std::size_t most_behind_mark = 8;

/// How many pieces follow the message under the mark, if `bytes` are sent.
template <marking_transport Transport>
[[gnu::always_inline]] inline std::size_t behind_mark(const Transport& wire, std::size_t bytes) noexcept {
    return load_cut::rides(wire, bytes) ? 0 : (bytes - 1) / cut_of(wire).short_bytes;
}

/// How a payload goes in one exchange, if the call is one.
enum class exchanged : unsigned char { otherwise, whole, in_pieces };

/// How a call of `vector` bytes is one exchange, of up to `longest` bytes each way: of two ranks, by a schedule that is `Carries`,
/// whose payload goes with the contract, or in pieces if it is no longer than `longest_in_pieces(cut)`.
template <class Schedule, class Carries, class Value, message_transport Transport, class InPieces>
[[gnu::always_inline]] inline exchanged how_goes(const Transport& wire, std::size_t vector, std::size_t longest,
                                                 const InPieces& longest_in_pieces) noexcept {
    if constexpr (marking_transport<Transport>) {
        if (!is_marked_pair(wire)) return exchanged::otherwise;
        const bool whole = load_cut::rides(wire, longest);
        const segmenting& cut = cut_of(wire);
        // two messages it would take anyway, of which one compares
        const std::size_t most = std::min(longest_behind_mark, std::max(2 * cut.short_bytes, longest_in_pieces(cut)));
        if (!whole && (cut.short_bytes == 0 || longest > most || behind_mark(wire, longest) > most_behind_mark))
            return exchanged::otherwise;
        const bool suits = with_schedule<Schedule>(
            vector, company_of(wire), [&]<class Chosen>() { return suits_contract<Chosen, Carries, Value>; });
        if (suits) return whole ? exchanged::whole : exchanged::in_pieces;
    }
    return exchanged::otherwise;
}
/// The longest that goes in pieces from or to a root.
inline constexpr auto in_pieces_one_way = [](const segmenting& cut) { return cut.longest_short(passage::one_way); };
/// The same of two blocks of `count` elements in all, which travel as `Value`s.
template <collective What, class Schedule, class Value, class Element, message_transport Transport>
[[gnu::always_inline]] inline exchanged how_blocks_go(const Transport& wire, std::size_t count) noexcept {
    return how_goes<Schedule, typename rider_of<What>::schedule, Value>(
        wire, count * sizeof(Element), (count + 1) / 2 * sizeof(Value),
        [](const segmenting& cut) { return cut.longest_short(passage::both_ways); });
}

/// Calls differ: takes what else the peer has announced.
template <marking_transport Transport>
[[gnu::cold]] void discard_announced(Transport& wire, std::uint64_t print, const call_site& where,
                                     const typename Transport::ticket& came, const contract_room& room) {
    const contract_head theirs = contract_message<Transport>{wire, true}.read(wire, came, room.other, print);
    discard_pieces(wire, 1 - wire.rank(), theirs.pieces, room.other, where);
}

/// Sends `leaves` bytes and takes as many as `comes`, of which one or both are more than go under the mark. Whether calls agree: if not,
/// nothing is on its way any more.
template <marking_transport Transport>
[[gnu::noinline]] bool exchange_behind_mark(Transport& wire, std::uint64_t print, const call_site& where,
                                            const contract_room& room, const std::byte* from, std::size_t leaves,
                                            std::size_t comes) {
    constexpr message_tag tag = message_tag::behind_mark;
    const int peer = 1 - wire.rank();
    const std::size_t piece = cut_of(wire).short_bytes;
    const std::size_t behind = behind_mark(wire, leaves);
    const std::size_t awaited = behind_mark(wire, comes);
    const std::uint32_t mark = contract_message<Transport>::mark_of(print);
    pending_messages<Transport, 1 + most_behind_mark> sent{wire};
    pending_messages<Transport, 1 + most_behind_mark> came{wire};
    sent.add(peer, wire.send_marked(peer, from, behind == 0 ? leaves : piece, mark));
    for (std::size_t i = 1; i <= behind; ++i)
        sent.send(peer, from + i * piece, i < behind ? piece : leaves - i * piece, tag);
    came.add(peer, wire.receive_marked(peer, room.other, longest_message));
    for (std::size_t i = 1; i <= awaited; ++i) came.receive(peer, room.other + i * piece, longest_message, tag);
    came.complete(1, where);
    if (wire.mark_of(came[0]) != mark) [[unlikely]] {
        discard_announced(wire, print, where, came[0], room);
        // those that are awaited and do not come are given up here, before the peer can go on to another call
        const std::size_t theirs = pieces_behind_mark_of_peer(wire, behind, where);
        const std::size_t expected = std::min(theirs, awaited);
        came.complete(1 + expected, where);
        discard_pieces(wire, peer, theirs - expected, room.other, where, tag);
        sent.complete(where);
        return false;
    }
    came.complete(where);
    sent.complete(where);
    // who gave up after all that others need had left it said so: they are not to think that it went well
    if (leaves > longest_rider || comes > longest_rider) wire.listen(where);
    return true;
}

/// Makes the call `what`: sends `leaves` bytes from `leaving(room)`, and calls `take(room)` once all has left and the `comes` bytes that
/// came are in `room.other`. Where calls differ nothing is taken, and both ranks throw.
template <class Checking, marking_transport Transport, class Leaving, class Take>
[[gnu::always_inline]] inline void make_in_one_exchange(Transport& wire, const call& told, exchanged how,
                                                        std::size_t leaves, std::size_t comes, const Leaving& leaving,
                                                        const Take& take) {
    const call what = compared<Checking>(wire, told);
    const std::uint64_t print = fingerprint(what);
    const std::uint32_t mark = contract_message<Transport>::mark_of(print);
    const call_site where{to_string(what.what), 0};
    half_done<Transport> leaves_word{wire};
    wire.begin(where);
    leaves_word.begin(where);
    const contract_room room{wire, std::max(leaves, comes)};
    const std::byte* const from = leaving(room);
    leaves_word.comparing([&]() __attribute__((always_inline)) {
        if (how == exchanged::in_pieces) {
            if (!exchange_behind_mark(wire, print, where, room, from, leaves, comes)) [[unlikely]]
                throw_difference(wire, what, where);
            return;
        }
        const int peer = 1 - wire.rank();
        pending_message<Transport> sent{wire, peer, wire.send_marked(peer, from, leaves, mark)};
        pending_message<Transport> came{wire, peer, wire.receive_marked(peer, room.other, longest_message)};
        came.complete(where);
        if (wire.mark_of(came.message()) != mark) [[unlikely]] {
            discard_announced(wire, print, where, came.message(), room);
            sent.complete(where);
            throw_mismatch(wire, what, where);
        }
        sent.complete(where);
    });
    take(room);
    leaves_word.end();
}

/// Folds the operands of both ranks, `own` and what came, into `out`.
template <class Op, class Element, class Transport>
[[gnu::always_inline]] inline void fold_both(const Transport& wire, const contract_room& room, const std::byte* own,
                                             Element* out, std::size_t count, const Op& op) {
    using accumulator = accumulator_t<Op, Element>;
    std::byte* const in_place = result_in<accumulator>(out);
    std::byte* const to = in_place != nullptr ? in_place : room.other;
    combine_bytes<accumulator>(op)(wire.rank() == 0 ? kernel::side::right : kernel::side::left, room.other, own, to,
                                   count * sizeof(accumulator));
    kernel::finish(reinterpret_cast<const accumulator*>(to), out, count, op, 2);
}

/// Sends `leaves` elements from `leaving`, and copies the `comes` that came to `incoming`, and `stays` of this rank's own from `kept` to
/// `here`.
template <class Element>
struct moved_blocks {
    const Element* leaving = nullptr;
    std::size_t leaves = 0;
    Element* incoming = nullptr;
    std::size_t comes = 0;
    const Element* kept = nullptr;
    Element* here = nullptr;
    std::size_t stays = 0;
};
template <class Checking, class Element, marking_transport Transport>
void move_in_one_exchange(Transport& wire, const call& told, exchanged how, const moved_blocks<Element>& blocks) {
    make_in_one_exchange<Checking>(
        wire, told, how, blocks.leaves * sizeof(Element), blocks.comes * sizeof(Element),
        [&](const contract_room&) { return reinterpret_cast<const std::byte*>(blocks.leaving); },
        [&](const contract_room& room) {
            kernel::copy(reinterpret_cast<const Element*>(room.other), blocks.incoming, blocks.comes);
            kernel::copy(blocks.kept, blocks.here, blocks.stays);
        });
}

// Each of these makes the call that was `told` if that is one exchange, and says whether it has.

template <class Schedule, class Checking, class Op, class Element, message_transport Transport>
[[gnu::always_inline]] inline bool allreduce_in_one_exchange(Transport& wire, const call& told, const Element* in,
                                                             Element* out, std::size_t count, const Op& op) {
    using accumulator = accumulator_t<Op, Element>;
    const std::size_t bytes = count * sizeof(accumulator);
    if constexpr (marking_transport<
                      Transport>)  // be it unchecked: in messages that go both ways a comparison is for nothing
        if (const exchanged how = how_goes<Schedule, recursive_doubling, accumulator>(
                wire, count * sizeof(Element), bytes,
                [](const segmenting& cut) { return std::max(cut.longest_short(passage::both_ways), cut.short_load); });
            how != exchanged::otherwise) {
            const std::byte* own = nullptr;
            make_in_one_exchange<Checking>(
                wire, told, how, bytes, bytes,
                [&](const contract_room& room) { return own = operands_in<accumulator>(room, in, count); },
                [&](const contract_room& room) { fold_both(wire, room, own, out, count, op); });
            return true;
        }
    return false;
}

template <class Schedule, class Checking, class Op, class Element, message_transport Transport>
bool reduce_in_one_exchange(Transport& wire, const call& told, const Element* in, Element* out, std::size_t count,
                            const Op& op) {
    using accumulator = accumulator_t<Op, Element>;
    const std::size_t bytes = count * sizeof(accumulator);
    if constexpr (Checking::compares && marking_transport<Transport>)
        if (const exchanged how =
                how_goes<Schedule, tree, accumulator>(wire, count * sizeof(Element), bytes, in_pieces_one_way);
            how != exchanged::otherwise) {
            const bool takes = wire.rank() == told.root;
            const std::byte* own = nullptr;
            make_in_one_exchange<Checking>(
                wire, told, how, takes ? 0 : bytes, takes ? bytes : 0,
                [&](const contract_room& room) { return own = operands_in<accumulator>(room, in, count); },
                [&](const contract_room& room) {
                    if (takes) fold_both(wire, room, own, out, count, op);
                });
            return true;
        }
    return false;
}

template <class Schedule, class Checking, class Op, class Element, message_transport Transport>
bool reduce_scatter_in_one_exchange(Transport& wire, const call& told, const Element* in, Element* out,
                                    std::size_t count, const Op& op) {
    using accumulator = accumulator_t<Op, Element>;
    if constexpr (marking_transport<Transport>)
        if (const exchanged how =
                how_blocks_go<collective::reduce_scatter, Schedule, accumulator, Element>(wire, count);
            how != exchanged::otherwise) {
            const partition blocks{count, 2};
            const int rank = wire.rank();
            const std::byte* all = nullptr;
            const auto block = [&](int of) { return all + blocks.first(of) * sizeof(accumulator); };
            make_in_one_exchange<Checking>(
                wire, told, how, blocks.length(1 - rank) * sizeof(accumulator),
                blocks.length(rank) * sizeof(accumulator),
                [&](const contract_room& room) {
                    all = operands_in<accumulator>(room, in, count);
                    return block(1 - rank);
                },
                [&](const contract_room& room) { fold_both(wire, room, block(rank), out, blocks.length(rank), op); });
            return true;
        }
    return false;
}

/// Moves blocks of `count` elements in all so: what `moved(blocks, rank, peer)` says.
template <collective What, class Schedule, class Checking, class Element, message_transport Transport, class Moved>
bool blocks_in_one_exchange(Transport& wire, const call& told, std::size_t count, const Moved& moved) {
    // only where all bring blocks a comparison is for nothing, be it unchecked
    if constexpr ((Checking::compares || What == collective::all_gather) && marking_transport<Transport>)
        if (const exchanged how = how_blocks_go<What, Schedule, Element, Element>(wire, count);
            how != exchanged::otherwise) {
            const int rank = wire.rank();
            move_in_one_exchange<Checking, Element>(wire, told, how, moved(partition{count, 2}, rank, 1 - rank));
            return true;
        }
    return false;
}

template <class Schedule, class Checking, class Element, message_transport Transport>
bool all_gather_in_one_exchange(Transport& wire, const call& told, const Element* in, Element* out, std::size_t count) {
    return blocks_in_one_exchange<collective::all_gather, Schedule, Checking, Element>(
        wire, told, count, [&](const partition& blocks, int rank, int peer) -> moved_blocks<Element> {
            const std::size_t own = blocks.length(rank);
            return {in, own, out + blocks.first(peer), blocks.length(peer), in, out + blocks.first(rank), own};
        });
}

template <class Schedule, class Checking, class Element, message_transport Transport>
bool broadcast_in_one_exchange(Transport& wire, const call& told, Element* data, std::size_t count) {
    const std::size_t bytes = count * sizeof(Element);
    if constexpr (Checking::compares && marking_transport<Transport>)
        if (const exchanged how = how_goes<Schedule, tree, Element>(wire, bytes, bytes, in_pieces_one_way);
            how != exchanged::otherwise) {
            const bool gives = wire.rank() == told.root;
            move_in_one_exchange<Checking, Element>(wire, told, how,
                                                    {data, gives ? count : 0, data, gives ? 0 : count});
            return true;
        }
    return false;
}

template <class Schedule, class Checking, class Element, message_transport Transport>
bool gather_in_one_exchange(Transport& wire, const call& told, const Element* in, Element* out, std::size_t count) {
    return blocks_in_one_exchange<collective::gather, Schedule, Checking, Element>(
        wire, told, count, [&](const partition& blocks, int rank, int peer) -> moved_blocks<Element> {
            const std::size_t own = blocks.length(rank);
            if (rank != told.root) return {.leaving = in, .leaves = own};
            return {nullptr, 0, out + blocks.first(peer), blocks.length(peer), in, out + blocks.first(rank), own};
        });
}

template <class Schedule, class Checking, class Element, message_transport Transport>
bool scatter_in_one_exchange(Transport& wire, const call& told, const Element* in, Element* out, std::size_t count) {
    return blocks_in_one_exchange<collective::scatter, Schedule, Checking, Element>(
        wire, told, count, [&](const partition& blocks, int rank, int peer) -> moved_blocks<Element> {
            const std::size_t own = blocks.length(rank);
            if (rank != told.root) return {.incoming = out, .comes = own};
            return {in + blocks.first(peer), blocks.length(peer), nullptr, 0, in + blocks.first(rank), out, own};
        });
}

template <class Schedule, class Checking, class Element, message_transport Transport>
bool all_to_all_in_one_exchange(Transport& wire, const call& told, const Element* in, Element* out, std::size_t count) {
    return blocks_in_one_exchange<collective::all_to_all, Schedule, Checking, Element>(
        wire, told, count, [&](const partition& blocks, int rank, int peer) -> moved_blocks<Element> {
            const std::size_t each = blocks.longest(), own = blocks.first(rank), other = blocks.first(peer);
            return {in + other, each, out + other, each, in + own, out + own, each};
        });
}

template <message_transport Transport>
bool barrier_in_one_exchange(Transport& wire, const call& told) {
    if constexpr (marking_transport<Transport>)
        if (is_marked_pair(wire)) {
            move_in_one_exchange<checked>(wire, told, exchanged::whole, moved_blocks<std::byte>{});
            return true;
        }
    return false;
}

}  // namespace ddl
