// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ddl {

/// Sizes in bytes at which the schedule `direct` over memory changes its way.
struct direct_limits {
    /// The longest vector of which every rank folds everything, where peers cannot map it.
    std::size_t one_shot = 2048;
    /// The shortest vector that is folded where it lies, where all peers can map it.
    std::size_t mapped = 2048;
    /// The same where blocks only move, in bytes that a rank hands out: it has to wait for its readers then.
    std::size_t mapped_move = 8192;
    /// What a rank stages of a block at a time: it is to be read before it leaves the second-level cache.
    std::size_t segment = std::size_t{1} << 17;
    /// The most that a rank stages in a call and takes the cache lines of back at once, for its next one. Ranks may differ.
    std::size_t reclaimed = 4096;

    /// What ranks compare, for they go by the same limits or not together.
    constexpr std::uint32_t fingerprint() const noexcept {
        std::uint64_t word = 0;
        for (const std::size_t each : {one_shot, mapped, mapped_move, segment})
            word = (word ^ each) * 0x9e37'79b9'7f4a'7c15 + (word >> 29);
        return static_cast<std::uint32_t>(word >> 32);
    }
};

/// The limits of a transport. Specialise it for a machine, before the first call and in every program of a job alike; ranks
/// compare it. `benchmarks/tune` prints such a line:
/// `template <> inline constexpr ddl::direct_limits ddl::limits_of<ddl::shared_memory>{.one_shot = 8192};`
template <class Transport>
inline constexpr direct_limits limits_of{};

}  // namespace ddl
