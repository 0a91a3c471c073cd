// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl {

/// The most blocks, 1 or more, that each of up to `ranks` ranks has for a whole vector of up to `bytes`.
struct grid_row {
    int ranks = 0;  // none: no row
    std::size_t bytes = 0;
    int blocks = 1;
};

/// When a vector is short, and how many threads fold it: as an H200 wants it whose ranks share it, and no other GPU has been asked.
struct grid_limits {
    std::size_t one_shot = std::size_t{1} << 16;  // bytes of the longest vector that each of many ranks folds alone
    int threads = 512;                            // of a block, at most
    std::size_t table = std::size_t{24} << 10;    // bytes that list tensors, in the arguments of a launch
    grid_row grids[16] = {};                      // of vectors whose blocks meet; the first that fits counts

    /// Bytes of the longest vector that each of so many ranks folds alone: all of it goes to every peer, and two ranks have one.
    constexpr std::size_t longest_one_shot(int ranks) const noexcept {
        return one_shot * (ranks <= 2 ? 4 : ranks <= 4 ? 2 : 1);
    }
    /// Blocks of a rank that has `most` at once: fewer where a row says so.
    constexpr int blocks(int ranks, std::size_t bytes, int most) const noexcept {
        for (const grid_row& row : grids)
            if (ranks <= row.ranks && bytes <= row.bytes) return row.blocks < most ? row.blocks : most;
        return most;
    }

    /// What ranks compare: a block without its counterpart would wait for ever.
    constexpr std::uint32_t fingerprint() const noexcept {
        std::uint64_t word = 0;
        const auto add = [&](std::uint64_t each) { word = (word ^ each) * 0x9e37'79b9'7f4a'7c15 + (word >> 29); };
        add(one_shot);
        add(static_cast<std::uint64_t>(threads));
        add(table);
        for (const grid_row& row : grids) {
            add(static_cast<std::uint64_t>(row.ranks));
            add(row.bytes);
            add(static_cast<std::uint64_t>(row.blocks));
        }
        return static_cast<std::uint32_t>(word >> 32);
    }
};

/// The limits of a transport of grids. Specialise it for a machine, before the first call and in every program of a job alike;
/// ranks compare it. `benchmarks/gpu/run` writes such a header.
template <class Transport>
inline constexpr grid_limits grid_limits_of{};

/// The same, if there are such grids.
template <class Transport>
consteval grid_limits sound_grid_limits() {
    constexpr grid_limits limits = grid_limits_of<Transport>;
    constexpr bool has_blocks = [](const grid_limits& of) {
        for (const grid_row& row : of.grids)
            if (row.blocks < 1) return false;
        return of.threads >= 1 && of.threads <= grid_limits{}.threads;
    }(limits);
    static_assert(
        has_blocks,
        "ddl: grid_limits_of this transport has blocks of no threads, of more than 512, or a row of no blocks");
    return limits;
}

}  // namespace ddl
