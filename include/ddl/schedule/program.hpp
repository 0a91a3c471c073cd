// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>

namespace ddl {

/// What a rank does with a chunk: passes it on, takes the arriving one in its place, or combines the arriving one with it.
enum class action : unsigned char { send, receive, receive_reduce };

/// One message of a round as one rank sees it: `count` neighbouring chunks from `chunk` on, to or from `peer`.
///
/// A `receive_reduce` from a lower rank puts the arriving operand on the left, one from a higher rank on the right.
struct transfer {
    action what{};
    int peer = 0;
    int chunk = 0;
    int count = 1;
    friend constexpr bool operator==(const transfer&, const transfer&) = default;
};

/// The same message with time running backwards: what was sent comes back, what was received is sent.
constexpr transfer mirrored(const transfer& forward) noexcept {
    const action what = forward.what == action::send ? action::receive : action::send;
    return {what, forward.peer, forward.chunk, forward.count};
}

/// The transfers of one rank in one round, when there are at most `Capacity` of them.
template <int Capacity>
struct transfer_list {
    // no `= {}`, in which nvcc 13 takes all but the first for uninitialised
    transfer items[static_cast<std::size_t>(Capacity)];
    int length = 0;
    constexpr int size() const noexcept { return length; }
    constexpr const transfer& operator[](int index) const noexcept { return items[index]; }
    /// Drops what has no room: the proof then finds that something is lacking.
    constexpr void push(const transfer& next) noexcept {
        if (length < Capacity) items[length++] = next;
    }
    /// Adds `count` chunks from `chunk` on in a circle of `chunks`: one transfer, or two where the circle closes.
    constexpr void push_circular(action what, int peer, int chunk, int count, int chunks) noexcept {
        const int straight = count < chunks - chunk ? count : chunks - chunk;
        if (straight > 0) push({what, peer, chunk, straight});
        if (count > straight) push({what, peer, 0, count - straight});
    }
};

/// What every rank does in every round over `chunks()` parts of a buffer: a small literal value that stores no list.
///
/// Within a round all transfers are under way at once; a round begins for a rank when its previous one has ended.
template <class Program>
concept program = requires(const Program p, int rank, int round, int index) {
    { p.size() } -> std::same_as<int>;              // ranks
    { p.chunks() } -> std::same_as<int>;            // parts that the buffer is cut into
    { p.rounds() } -> std::same_as<int>;            //
    { p.width(rank, round) } -> std::same_as<int>;  // transfers of that rank in that round
    { p.at(rank, round, index) } -> std::same_as<transfer>;
};

/// The chunks of a program; 0 also where somebody wrote fewer.
template <program Program>
constexpr int chunks_of(const Program& what) noexcept {
    return what.chunks() < 0 ? 0 : what.chunks();
}

constexpr int wrap(int value, int size) noexcept {
    const int remainder = value % size;
    return remainder < 0 ? remainder + size : remainder;
}

/// The least `k` with `2^k >= size`: steps that a contribution needs to reach `size` ranks.
constexpr int ceil_log2(int size) noexcept {
    return size > 1 ? static_cast<int>(std::bit_width(static_cast<unsigned>(size - 1))) : 0;
}

}  // namespace ddl
