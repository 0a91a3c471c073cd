// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/program.hpp>
#include <ddl/schedule/selected.hpp>
#include <ddl/transport/segmenting.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ddl {

/// Just below 64 KiB: many networks send so much at once, and from there on first ask the receiver, who answers between
/// other messages; then a link that could carry both directions at a time carries one. As many at a time as hide the time of
/// a few. Specialise it for a transport, in every program of a job alike:
/// `template <> inline constexpr ddl::segmenting ddl::segments_of<ddl::mpi>{.bytes = 1 << 20, .depth = 4};`
template <class Transport>
inline constexpr segmenting segments_of{std::size_t{60} << 10, 16};

/// What a transport says of ranks that are all on one host, or long segments, for each costs a wait. The cores that combine move the
/// messages, too: operands that have arrived ahead gain nothing, and push what is combined out of the caches.
template <class Transport>
consteval segmenting own_host_segments() {
    if constexpr (requires { Transport::host_segments; }) return Transport::host_segments;
    else return {.bytes = std::size_t{1} << 20, .depth = 8, .combining = std::size_t{1} << 20};
}
/// How messages are cut there; a program may specialise it, as the others.
template <class Transport>
inline constexpr segmenting host_segments_of = own_host_segments<Transport>();

/// The same two where pieces of a message arrive no sooner than the message.
template <class Transport>
consteval segmenting own_whole_segments() {
    if constexpr (requires { Transport::whole_segments; }) return Transport::whole_segments;
    else return host_segments_of<Transport>;
}
template <class Transport>
inline constexpr segmenting whole_segments_of = own_whole_segments<Transport>();

/// Whether ranks of one host may know better how messages are best cut, and no program says otherwise.
template <class Transport>
inline constexpr bool has_segments_here = requires(const Transport& wire) { wire.segments_here(); } &&
                                          host_segments_of<Transport> == own_host_segments<Transport>() &&
                                          whole_segments_of<Transport> == own_whole_segments<Transport>();

/// How `wire` cuts messages.
template <class Transport>
constexpr const segmenting& cut_of(const Transport& wire) noexcept {
    if constexpr (requires { wire.on_one_host(); })
        if (wire.on_one_host()) {
            if constexpr (has_segments_here<Transport>)
                if (const segmenting* const here = wire.segments_here(); here != nullptr) return *here;
            if constexpr (requires { wire.pieces_pay(); })
                if (!wire.pieces_pay()) return whole_segments_of<Transport>;
            return host_segments_of<Transport>;
        }
    return segments_of<Transport>;
}

/// Whether ranks of `wire` that exchange operands combine in step: each combines what has come when what it gives has left. Where
/// cores move messages one of a pair that combines while the other still copies slows both, and is ahead for good; of ranks that
/// share cores the other had better have the core.
template <class Transport>
bool combine_in_step(const Transport& wire) noexcept {
    if constexpr (requires { wire.uncrowded(); })
        if (!wire.uncrowded()) return false;
    return cut_of(wire).cores_move();
}

/// The most ranks of which each may send its part of a contract to all others at once.
inline constexpr int most_direct_ranks = 8;

/// With whom the rounds of contracts over `wire` begin, so that the longest parts of what is halved go between ranks that lie close.
/// Few ranks of one host begin halves apart where they lie so: blocks, which rounds keep in the order of ranks, go directly among
/// them. Between hosts a broadcast would cross with all that half of the ranks then have.
template <class Transport>
nearer first_pairs(const Transport& wire) noexcept {
    if constexpr (requires {
                      wire.dealt_in_turn();
                      wire.on_one_host();
                  })
        if (wire.dealt_in_turn() && wire.on_one_host() && wire.size() > 2 && wire.size() <= most_direct_ranks &&
            std::has_single_bit(static_cast<unsigned>(wire.size())))
            return nearer::halves_apart;
    return nearer::neighbours;
}

/// A message that is passed whole in this length counts as long, if shorter ones are in pieces.
inline constexpr std::size_t long_message = std::size_t{32} << 10;

/// The ranks of `wire`, for schedules that depend on them. The same on all of them.
template <class Transport>
[[gnu::always_inline]] inline company company_of(const Transport& wire) noexcept {
    company all{.ranks = wire.size(), .close = first_pairs(wire)};
    if constexpr (requires { wire.on_one_host(); }) all.near = wire.on_one_host();
    if constexpr (requires { wire.uncrowded(); }) all.own_cores = all.near && wire.uncrowded();
    if constexpr (requires {
                      wire.uncrowded();
                      wire.pieces_pay();
                  }) {
        const bool share = all.near && !all.own_cores;
        all.crowded = share && !wire.pieces_pay();
        all.long_whole = share && !all.crowded && cut_of(wire).short_message < long_message;
    }
    return all;
}

/// How messages pass that this rank of `wire` and `peer` exchange.
template <class Transport>
passage exchange_with(const Transport& wire, int peer) noexcept {
    if constexpr (requires { wire.beside(peer); })
        if (wire.beside(peer)) return passage::beside;
    return passage::both_ways;
}

/// What ranks compare of it. Whether pieces pay is not of it: the ranks of a communicator know that alike, those of others, which
/// a stack of levels compares with them, may know better.
template <class Transport>
std::uint32_t cut_fingerprint(const Transport& wire) noexcept {
    constexpr std::uint32_t near =
        host_segments_of<Transport>.fingerprint() + 3 * whole_segments_of<Transport>.fingerprint();
    constexpr std::uint32_t far = segments_of<Transport>.fingerprint();
    return &cut_of(wire) == &segments_of<Transport> ? far : near;
}

/// Bytes in whole cache lines.
constexpr std::size_t whole_lines(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

/// A transfer of a round, where its bytes lie.
struct leg {
    std::byte* data;
    const std::byte* before;  // where the values of this rank are, if an operand is combined with them
    std::size_t bytes;
    std::byte* arrival;  // where an operand is received, null if in a slot of its lane
    action what;
    int next;             // of the same lane, -1 behind the last
    std::size_t segment;  // bytes
};

/// A segment of a lane.
struct lane_position {
    int leg;         // -1 behind the last
    std::size_t at;  // bytes into it
    int count;       // segments before it
};

/// The transfers of a round to one peer, or from it, in the order of the program.
struct lane {
    int peer;
    bool sends;
    bool combines;
    int last;  // leg
    lane_position posted;
    lane_position moved;   // sent or received
    lane_position used;    // of arrivals: combined, if they are operands
    std::byte* slot_room;  // for arrivals, if operands have no room of their own

    bool finished() const noexcept { return (sends ? moved : used).leg < 0; }
};

/// How the operands of a round are received: in slots of `slot` bytes, or in a room of its own for each.
struct arrivals {
    bool only_sends = true;  // nothing arrives at all
    bool own_room = false;
    bool entangled = false;  // something is combined twice, or also sent
    std::size_t slot = 0;
    std::size_t bytes = 0;
};

/// How `t`, a transfer of this rank of `wire` in a round, goes. Both ends know the same.
template <class Transport, program Program>
passage passage_of(const Transport& wire, const Program& program, int round, const transfer& t) {
    const int receiver = t.what == action::send ? t.peer : wire.rank();
    for (int i = 0, width = program.width(receiver, round); i < width; ++i)
        if (program.at(receiver, round, i).what == action::send) return exchange_with(wire, t.peer);
    return passage::one_way;
}

/// Whether `t` is combined where it goes.
template <class Transport, program Program>
bool is_combined(const Transport& wire, const Program& program, int round, const transfer& t) {
    if (t.what != action::send) return t.what == action::receive_reduce;
    for (int i = 0, width = program.width(t.peer, round); i < width; ++i)
        if (const transfer there = program.at(t.peer, round, i);
            there.what == action::receive_reduce && there.peer == wire.rank() && there.chunk == t.chunk)
            return true;
    return false;
}

/// Bytes of a segment of such a transfer of `bytes`.
template <class Transport, program Program>
std::size_t segment_of(const Transport& wire, const Program& program, int round, const transfer& t, std::size_t bytes,
                       std::size_t unit) {
    const segmenting& cut = cut_of(wire);
    // in pieces one rank moves what comes next while the other combines; ranks that are more share cores, or combine more than one
    if (cut.long_operand != 0 && bytes >= cut.long_operand && wire.size() == 2 &&
        is_combined(wire, program, round, t) && passage_of(wire, program, round, t) == passage::one_way)
        return cut.operand_length(unit);
    const bool is_long = bytes > cut.longest_in_pieces();
    return cut.length(bytes, unit, is_long ? passage::one_way : passage_of(wire, program, round, t));
}

/// That of this rank of `wire`. `bytes_of(t)` is how long a transfer that is combined is.
template <class Transport, program Program, class Bytes>
arrivals arrivals_of(const Transport& wire, const Program& program, int round, Bytes bytes_of, std::size_t unit) {
    const segmenting& cut = cut_of(wire);
    const int rank = wire.rank();
    arrivals result;
    std::size_t all = 0;
    int lanes = 0;  // that combine
    for (int i = 0, width = program.width(rank, round); i < width; ++i) {
        const transfer t = program.at(rank, round, i);
        result.only_sends = result.only_sends && t.what == action::send;
        if (t.what != action::receive_reduce) continue;
        bool is_first = true;  // of its lane
        const std::size_t bytes = bytes_of(t);
        const std::size_t most = segment_of(wire, program, round, t, bytes, unit);
        const std::size_t segment = bytes < most ? bytes : most;
        all += whole_lines(bytes);
        result.slot = whole_lines(segment) > result.slot ? whole_lines(segment) : result.slot;
        for (int j = 0; j < width; ++j) {
            const transfer s = program.at(rank, round, j);
            if (j < i && s.what == action::receive_reduce && s.peer == t.peer) is_first = false;
            if (j == i || s.chunk >= t.chunk + t.count || t.chunk >= s.chunk + s.count) continue;
            result.entangled = true;
            if (s.what == action::send)
                result.own_room = true;  // a slot would wait for the send, and the send for a slot
        }
        lanes += is_first;
    }
    // with lanes that combine nothing beside these, each has fewer
    const std::size_t in_slots = static_cast<std::size_t>(lanes * cut.segments(lanes, result.slot)) * result.slot;
    result.own_room = result.own_room || all <= in_slots;
    result.bytes = result.own_room ? all : in_slots;
    return result;
}

}  // namespace ddl
