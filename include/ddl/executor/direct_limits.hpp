// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/hand_back.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ddl {

/// Sizes in bytes at which the schedule `direct` over memory changes its way.
///
/// Three of them can be left to the processor: AMD's find it dear to write what another core has read
/// (`kernel::readers_hold_up_writers`), but for long copies from Zen 5 on (`kernel::string_moves_take_lines`); all others get what
/// was found best on Intel's.
struct direct_limits {
    static constexpr std::size_t by_processor = ~std::size_t{0};

    /// The longest vector of which every rank folds everything, where peers cannot map it; of many ranks see `one_shot_among`.
    std::size_t one_shot = 4096;
    /// The shortest vector that is folded where it lies, where all peers can map it. By processor 4097, on AMD's 8192.
    std::size_t mapped = by_processor;
    /// The same where blocks only move, in bytes that a rank hands out: it has to wait for its readers then.
    std::size_t mapped_move = 8192;
    /// What a rank stages of a block at a time: it is to be read before it leaves the second-level cache.
    std::size_t segment = std::size_t{1} << 17;
    /// What all ranks together spread their segments over, where lines that go to and fro are cheaper if they are many. 0: each
    /// call stages where the one before the last did. By processor 256 KiB, on AMD's 0.
    std::size_t spread = by_processor;
    /// In how many areas, a power of two, one of two ranks stages what only moves, in turns: so far it gets ahead of its reader.
    /// More than 2 make segments as much shorter. By processor 2, from Zen 5 on 4.
    std::size_t areas = by_processor;
    /// The most that a rank stages in a call and takes the cache lines of back at once, for its next one. Ranks may differ.
    std::size_t reclaimed = 4096;

    /// The longest vector of which all of `ranks` ranks fold everything, where each has a core: another step takes no longer than
    /// to read what more than four others bring.
    constexpr std::size_t one_shot_among(int ranks) const noexcept {
        const auto others = static_cast<std::size_t>(ranks - 1);
        return others <= 4 ? one_shot : one_shot / others * 4;
    }

    /// The same with nothing left to the processor.
    constexpr direct_limits for_processor(bool readers_hold_up_writers, bool string_moves_take_lines) const noexcept {
        direct_limits all = *this;
        if (mapped == by_processor) all.mapped = readers_hold_up_writers ? 8192 : 4097;
        if (spread == by_processor) all.spread = readers_hold_up_writers ? 0 : std::size_t{1} << 18;
        if (areas == by_processor) all.areas = string_moves_take_lines ? 4 : 2;
        return all;
    }

    /// What ranks compare, if nothing is left to the processor: they go by the same limits or not together.
    constexpr std::uint32_t fingerprint() const noexcept {
        std::uint64_t word = 0;
        for (const std::size_t each : {one_shot, mapped, mapped_move, segment, spread, areas})
            word = (word ^ each) * 0x9e37'79b9'7f4a'7c15 + (word >> 29);
        return static_cast<std::uint32_t>(word >> 32);
    }
};

/// The limits of a transport. Specialise it for a machine, before the first call and in every program of a job alike; ranks
/// compare it. `benchmarks/tune` prints such a line:
/// `template <> inline constexpr ddl::direct_limits ddl::limits_of<ddl::shared_memory>{.one_shot = 8192};`
template <class Transport>
inline constexpr direct_limits limits_of{};

/// Those limits on this processor, and what ranks compare of them.
template <class Transport>
struct limits_here {
    static const direct_limits& all() noexcept { return chosen(on_others, on_amd, since_zen_5); }
    static std::uint32_t fingerprint() noexcept { return chosen(others_mark, amd_mark, zen_5_mark); }

    /// The longest vector that `ranks`, all of them or one, fold whole.
    static std::size_t longest_one_shot(const Transport& ranks, bool all) noexcept {
        if constexpr (requires { ranks.uncrowded(); })
            if (all && ranks.size() > 5 && ranks.uncrowded()) return limits_here::all().one_shot_among(ranks.size());
        return limits_here::all().one_shot;
    }

private:
    static constexpr direct_limits on_others = limits_of<Transport>.for_processor(false, false);
    static constexpr direct_limits on_amd = limits_of<Transport>.for_processor(true, false);
    static constexpr direct_limits since_zen_5 = limits_of<Transport>.for_processor(true, true);
    static constexpr std::uint32_t others_mark = on_others.fingerprint(), amd_mark = on_amd.fingerprint(),
                                   zen_5_mark = since_zen_5.fingerprint();

    template <class Value>
    static const Value& chosen(const Value& others, const Value& amd, const Value& zen_5) noexcept {
        return !kernel::readers_hold_up_writers() ? others : kernel::string_moves_take_lines() ? zen_5 : amd;
    }
};

}  // namespace ddl
