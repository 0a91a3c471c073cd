// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/message_lanes.hpp>
#include <ddl/schedule/nearer.hpp>
#include <ddl/schedule/recursive_doubling.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ddl {

/// Where the payload that travels with a contract goes: everywhere, from the root to all, or from all to the root.
enum class flow : unsigned char { among_all, from_root, to_root };

/// Whether the message of `from` to `to` brings payload in a round of recursive doubling among `size` ranks.
///
/// What flows to a root takes the binomial tree that is part of the pattern, and each operand takes it once.
constexpr bool carries_payload(flow way, int root, int from, int to, int round, int size,
                               nearer close = nearer::neighbours) noexcept {
    if (way == flow::among_all) return true;
    const int sender = recursive_doubling::place(from, size);
    const int receiver = recursive_doubling::place(to, size);
    if (sender == receiver) {  // a pair of which one rank hands its part over, and gets the result
        if (round == 0) return way == flow::to_root || from == root;
        return (to == root) == (way == flow::to_root);
    }
    const auto from_there = [](int here, int there) { return static_cast<unsigned>(here ^ there); };
    const unsigned distance = from_there(sender, receiver);
    const int end = recursive_doubling::place(root, size);
    const unsigned left = from_there(way == flow::to_root ? receiver : sender, end);  // to go, or gone
    const bool by_neighbours = close == nearer::neighbours;
    return by_neighbours == (way == flow::to_root) ? left % (2 * distance) == 0 : left < distance;
}

/// What a rank says of a call first, before any payload.
struct alignas(16) contract_head {
    std::uint64_t call;  // its fingerprint
    std::uint32_t differ;
    std::uint32_t pieces;  // messages of payload that follow
};

/// Bytes of it in a message that brings payload over `wire`: none where a mark stands for it.
template <class Transport>
constexpr std::size_t head_bytes(const Transport& wire) noexcept {
    if constexpr (requires { wire.marks(); })
        if (wire.marks()) return 0;
    return sizeof(contract_head);
}

/// The longest payload that travels whole with a contract, and that rides in one message whatever the wire; in bytes.
inline constexpr std::size_t longest_load = std::size_t{64} << 10;
inline constexpr std::size_t longest_rider = 8192;

/// The longest message of a contract: a part of what is halved. Every rank has room for it, for another may call something else.
inline constexpr std::size_t longest_message = std::size_t{512} << 10;

/// The longest vector that each rank sends to all others, in bytes, unless all that rides does.
inline constexpr std::size_t longest_direct = 2048;

/// How a payload of `bytes` travels with a contract over `wire`: it rides in the contract's message, or follows it in pieces,
/// each of whole elements of `unit` bytes.
struct load_cut {
    static constexpr std::size_t most_pieces = 33;

    std::size_t bytes = 0;
    std::size_t piece = 0;   // bytes of one
    std::size_t pieces = 0;  // 0 if it rides
    bool direct = false;     // in messages from each rank to each

    load_cut() = default;
    template <class Transport>
    load_cut(const Transport& wire, std::size_t payload, std::size_t unit, flow way) noexcept : bytes{payload} {
        const segmenting& cut = cut_of(wire);
        direct = goes_directly(wire, bytes, way);
        if (direct) return;
        const std::size_t whole = head_bytes(wire) + bytes;
        // of up to three ranks two exchange at a time, and mostly have a core each: there one message takes less than three
        const std::size_t most = wire.size() < 4 ? cut.quick_bytes : cut.quick_message;
        const bool quick = bytes <= most && whole > cut.quick_bytes;
        if (rides(wire, bytes) && !quick) return;
        follow(cut.load_length(bytes, unit, way == flow::among_all ? passage::both_ways : passage::one_way));
    }
    /// Of a contract that brings none.
    template <class Transport>
    static load_cut none(const Transport& wire) noexcept {
        return {wire, 0, 1, flow::among_all};
    }
    /// Whether as much rides whatever the ranks: so do the parts of what is gathered.
    template <class Transport>
    [[gnu::always_inline]] static bool rides(const Transport& wire, std::size_t payload) noexcept {
        const std::size_t most = cut_of(wire).short_bytes;
        return payload <= longest_rider && (most == 0 || head_bytes(wire) + payload <= most);
    }
    /// Whether blocks of up to `longest` bytes ride in messages from each rank to each: among few ranks, but more than two, of
    /// which rounds take as many messages.
    template <class Transport>
    static bool rides_directly(const Transport& wire, std::size_t longest) noexcept {
        return wire.size() > 2 && wire.size() <= most_direct_ranks && rides(wire, longest);
    }
    /// The same of a vector that all of them bring, and fold, or that flows from or to one of them.
    template <class Transport>
    static bool goes_directly(const Transport& wire, std::size_t vector, flow way) noexcept {
        if (!rides_directly(wire, vector)) return false;
        const company ranks = company_of(wire);
        const std::size_t quick = cut_of(wire).quick_bytes;
        // where few messages pay, rounds do of three ranks and of eight; others take more of them, and wait longer
        if ((ranks.ranks == 3 || ranks.ranks == 8) && ranks.crowded) return false;
        // where they cost little, all that rides from or to one of four and more goes so
        if (ranks.messages_cost_little() && ranks.ranks > 3 && way != flow::among_all) return true;
        // where each has a core, rounds do of four and more; but long ones to a root and back of no power of two
        const bool in_pairs = std::has_single_bit(static_cast<unsigned>(ranks.ranks));
        if (ranks.own_cores && ranks.ranks > 3 && (way == flow::among_all || in_pairs || vector <= quick)) return false;
        return vector <= (ranks.ranks == 3 && quick > 0 ? quick : longest_direct);
    }
    /// Of a part that never rides.
    static load_cut of_part(const segmenting& cut, std::size_t payload, std::size_t unit, passage way) noexcept {
        load_cut result;
        result.bytes = payload;
        result.follow(cut.length(payload, unit, way));
        return result;
    }
    /// Whether it may travel with a contract at all: whole, or as a part of what is halved, which may be `longest`.
    bool fits(std::size_t longest = longest_load) const noexcept { return bytes <= longest && pieces <= most_pieces; }
    std::size_t length(std::size_t index) const noexcept {
        const std::size_t left = bytes - index * piece;
        return left < piece ? left : piece;
    }

private:
    void follow(std::size_t each) noexcept {
        piece = each;
        pieces = (bytes + piece - 1) / piece;
    }
};

/// The part of a payload that a message of a contract brings.
struct load_part {
    std::size_t first = 0;  // bytes of the payload before it
    load_cut cut;
};

/// A payload that travels whole with a contract, which then is the collective.
struct contract_load {
    static constexpr bool in_parts = false;

    const load_cut& cut;  // where it was made: who copies words that have just been stored waits for them
    flow way = flow::among_all;
    int root = 0;
    const std::byte* payload = nullptr;  // of a rank that has one
    std::byte* result = nullptr;         // where its pieces are folded at last, if that need not be in scratch

    bool moves(int from, int to, int round, int size, nearer close) const noexcept {
        return cut.bytes > 0 && from >= 0 && to >= 0 && carries_payload(way, root, from, to, round, size, close);
    }
    load_part given(int, int) const noexcept { return {0, cut}; }
    load_part kept(int, int) const noexcept { return {0, cut}; }
};

}  // namespace ddl
