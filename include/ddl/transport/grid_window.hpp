// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl {

/// The memory of one rank of a grid that its peers' blocks write to, and how far its own blocks have come. All 64-bit words.
///
/// Block `b` of a rank speaks to block `b` of its peers and to no other, so that a call may have as many blocks as it likes,
/// and the next one more or fewer. A view on bytes that somebody else owns: zero before any block uses them.
class grid_window {
public:
    static constexpr int most_ranks = 32;
    static constexpr int most_blocks = 512;  // of a rank, in a call that meets
    /// Words that a block takes from each peer in a call whose data is its flag.
    static constexpr std::size_t inbox = 512;
    /// The most blocks of each rank in such a call: fewer where more peers send to them.
    static constexpr int inbox_blocks(int ranks) noexcept { return ranks <= 2 ? 128 : ranks <= 4 ? 64 : 32; }

    constexpr grid_window(std::uint64_t* base, int ranks) noexcept
        : base_{base}, ranks_{static_cast<std::size_t>(ranks)} {}

    static constexpr std::size_t bytes(int ranks) noexcept {
        return 8 * (before_inboxes + 2 * index(inbox_blocks(ranks)) * index(ranks) * inbox);
    }

    /// How often a block of this rank has met its peers, and how often it has sent data as flags. Its own affair.
    constexpr std::uint64_t* meetings(int block) const noexcept { return base_ + line * index(block); }
    constexpr std::uint64_t* shots(int block) const noexcept { return base_ + line * index(block) + 1; }

    /// The last meeting that block `block` of `peer` has come to. Written by it alone.
    constexpr std::uint64_t* arrival(int block, int peer) const noexcept {
        return base_ + before_arrivals + most_ranks * index(block) + index(peer);
    }

    /// What block `block` of `peer` sends in its `shot`: the halves are used in turns, for a rank is at most one shot ahead.
    constexpr std::uint64_t* words_from(int peer, int block, std::uint64_t shot) const noexcept {
        return base_ + before_inboxes +
               (((shot % 2) * index(inbox_blocks(static_cast<int>(ranks_))) + index(block)) * ranks_ + index(peer)) *
                   inbox;
    }

private:
    static constexpr std::size_t line = 16;  // 128 bytes: what a GPU moves at once
    static constexpr std::size_t before_arrivals = line * most_blocks;
    static constexpr std::size_t before_inboxes = before_arrivals + std::size_t{most_ranks} * std::size_t{most_blocks};

    static constexpr std::size_t index(int number) noexcept { return static_cast<std::size_t>(number); }

    std::uint64_t* base_;
    std::size_t ranks_;
};

/// Where all ranks of a call keep their windows. Plain bytes: it is handed to a kernel as an argument.
struct grid_windows {
    int size = 0;
    std::uint64_t* windows[grid_window::most_ranks] = {};

    constexpr grid_window window(int rank) const noexcept { return {windows[rank], size}; }
};

/// And their buffers.
template <class Element>
struct grid_ranks : grid_windows {
    const Element* in[grid_window::most_ranks] = {};
    Element* out[grid_window::most_ranks] = {};
};

}  // namespace ddl
