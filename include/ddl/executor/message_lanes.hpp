// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/program.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ddl {

/// How messages are cut, and how many pieces are under way at a time. Sizes in bytes.
struct segmenting {
    std::size_t bytes;              // of a segment
    int depth;                      // segments under way to a peer, and from it, at most
    std::size_t short_message = 0;  // a message that is no longer
    std::size_t short_bytes = 0;    //     is cut into segments of so many
    std::size_t short_chunk = 0;    // the same where a program cuts the vector into chunks; 0: as many
    std::size_t quick_message = 0;  // a message that is no longer
    std::size_t quick_bytes = 0;    //     is cut into segments of so many, whatever the program
    std::size_t combining = 0;      // under way each way with a peer while operands arrive, or a segment; 0: no limit

    /// What ranks compare, for both ends of a message cut it alike or not at all.
    constexpr std::uint32_t fingerprint() const noexcept {
        std::uint64_t word = 0;
        for (const std::size_t each : {bytes, short_message, short_bytes, short_chunk, quick_message, quick_bytes})
            word = (word + each) * 0x9e37'79b9'7f4a'7c15U;
        return static_cast<std::uint32_t>(word >> 32);
    }

    /// Messages under way in a round of so many lanes at most; also slots, of so many lanes with operands.
    constexpr int messages(int lanes) const noexcept {
        const int enough = 8 * depth;
        if (lanes >= enough) return lanes;
        return lanes * depth < enough ? lanes * depth : enough;
    }
    /// Segments under way to a peer, or from it, in a round of so many lanes at most, of operands in segments of `operand` bytes.
    constexpr int segments(int lanes, std::size_t operand) const noexcept {
        const int most = lanes > 0 ? messages(lanes) / lanes : 1;
        if (combining == 0 || static_cast<std::size_t>(most) * operand <= combining) return most;
        return operand < combining ? static_cast<int>(combining / operand) : 1;
    }
    /// Bytes of a segment of a message of `message` bytes, in whole elements of `unit` bytes, where a program cuts the vector
    /// into `chunks`.
    constexpr std::size_t length(std::size_t message, std::size_t unit, int chunks) const noexcept {
        const std::size_t few = chunks > 1 && short_chunk != 0 ? short_chunk : short_message;
        const std::size_t most = message <= quick_message ? quick_bytes : message <= few ? short_bytes : bytes;
        return most > unit ? most / unit * unit : unit;
    }
};

/// Just below 64 KiB: many networks send so much at once, and from there on first ask the receiver, who answers between
/// other messages; then a link that could carry both directions at a time carries one. As many at a time as hide the time of
/// a few. Specialise it for a transport, in every program of a job alike:
/// `template <> inline constexpr ddl::segmenting ddl::segments_of<ddl::mpi>{.bytes = 1 << 20, .depth = 4};`
template <class Transport>
inline constexpr segmenting segments_of{std::size_t{60} << 10, 16};

/// What a transport says of its messages.
template <class Transport>
inline constexpr std::size_t quick_bytes_of = 0;
template <class Transport>
    requires requires { Transport::quick_bytes; }
inline constexpr std::size_t quick_bytes_of<Transport> = Transport::quick_bytes;

/// The same where all ranks are on one host. Up to 4 KiB with its own header a message passes through memory that both have
/// mapped; a longer one waits for an answer, which pays off once it is long, and then each segment costs another answer.
/// For chunks sooner: half of them are results, which a long message brings to their place in one copy. Where ranks share cores
/// two messages that a library sends in a quick way take less time than one that is longer. The cores that combine move the messages,
/// too: operands that have arrived ahead gain nothing, and push what is combined out of the caches.
template <class Transport>
inline constexpr segmenting host_segments_of{.bytes = std::size_t{1} << 20,
                                             .depth = 8,
                                             .short_message = std::size_t{16} << 10,
                                             .short_bytes = 4032,
                                             .short_chunk = std::size_t{8} << 10,
                                             .quick_message = 2 * quick_bytes_of<Transport>,
                                             .quick_bytes = quick_bytes_of<Transport>,
                                             .combining = std::size_t{1} << 20};

/// How `wire` cuts messages.
template <class Transport>
constexpr const segmenting& cut_of(const Transport& wire) noexcept {
    if constexpr (requires { wire.on_one_host(); })
        if (wire.on_one_host()) return host_segments_of<Transport>;
    return segments_of<Transport>;
}

/// What ranks compare of it.
template <class Transport>
std::uint32_t cut_fingerprint(const Transport& wire) noexcept {
    constexpr std::uint32_t near = host_segments_of<Transport>.fingerprint();
    constexpr std::uint32_t far = segments_of<Transport>.fingerprint();
    return &cut_of(wire) == &segments_of<Transport> ? far : near;
}

/// Bytes in whole cache lines.
constexpr std::size_t whole_lines(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

/// A transfer of a round, where its bytes lie.
struct leg {
    std::byte* data;
    std::size_t bytes;
    std::byte* arrival;  // where an operand is received, if each has a room of its own
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
    lane_position moved;  // sent or received
    lane_position used;   // of arrivals: combined, if they are operands
    std::byte* slots;     // for arrivals, if operands have no room of their own

    bool finished() const noexcept { return (sends ? moved : used).leg < 0; }
};

/// How the operands of a round are received: in slots of `slot` bytes, or in a room of its own for each.
struct arrivals {
    bool own_room = false;
    bool entangled = false;  // something is combined twice, or also sent
    std::size_t slot = 0;
    std::size_t bytes = 0;
};

/// That of `rank`. `bytes_of(t)` is how long a transfer that is combined is.
template <program Program, class Bytes>
arrivals arrivals_of(const Program& program, int rank, int round, Bytes bytes_of, std::size_t unit,
                     const segmenting& cut) {
    arrivals result;
    std::size_t all = 0;
    int operands = 0;
    for (int i = 0, width = program.width(rank, round); i < width; ++i) {
        const transfer t = program.at(rank, round, i);
        if (t.what != action::receive_reduce) continue;
        ++operands;
        const std::size_t bytes = bytes_of(t);
        const std::size_t most = cut.length(bytes, unit, program.chunks());
        const std::size_t segment = bytes < most ? bytes : most;
        all += whole_lines(bytes);
        result.slot = whole_lines(segment) > result.slot ? whole_lines(segment) : result.slot;
        for (int j = 0; j < width; ++j) {
            const transfer s = program.at(rank, round, j);
            if (j == i || s.chunk >= t.chunk + t.count || t.chunk >= s.chunk + s.count) continue;
            result.entangled = true;
            if (s.what == action::send)
                result.own_room = true;  // a slot would wait for the send, and the send for a slot
        }
    }
    const std::size_t slots = static_cast<std::size_t>(operands * cut.segments(operands, result.slot)) * result.slot;
    result.own_room = result.own_room || all <= slots;
    result.bytes = result.own_room ? all : slots;
    return result;
}

}  // namespace ddl
