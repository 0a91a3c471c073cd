// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ddl::kernel {

/// Whether a core that writes what another has read, again and again, had better get the lines back stored to: where the
/// other one only reads, each store waits until its copy has been given up. On Zen 4 that takes 9 ns a line; a line that the
/// other one has stored to is fetched in 1 ns.
inline bool readers_hold_up_writers() noexcept {
#if defined(__x86_64__)
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

/// Whether a long copy by a string move takes lines away from their readers, and waits for none of them: it writes them whole,
/// without having been given them. On Zen 5, and what came after it, that takes 2 ns a line where single stores wait 8; no older
/// processor is known to do it. They also do not mind where the two ends of a copy lie (see `is_slow_forward`).
inline bool string_moves_take_lines() noexcept {
#if defined(__x86_64__)
    static const bool does = [] {
        unsigned int family = 0, unused = 0;
        if (!readers_hold_up_writers() || __get_cpuid(1, &family, &unused, &unused, &unused) == 0) return false;
        return (family >> 8 & 0xf) + (family >> 20 & 0xff) >= 0x1a;
    }();
    return does;
#else
    return false;
#endif
}

/// The shortest move that is worth its beginning, in bytes.
inline constexpr std::size_t least_string = 16384;

/// Whether `copy` with `stores::shared` does that for so many bytes. Lines of shorter ones had better be handed back.
inline bool copy_takes_lines(std::size_t bytes) noexcept { return bytes >= least_string && string_moves_take_lines(); }

/// Stores to each cache line of `bytes` bytes at `at`, which nobody needs any more: the next to write there has not to wait for
/// this core's copies. Call it with what this core has just read, and no other reads.
inline void hand_back(std::byte* at, std::size_t bytes) noexcept {
    constexpr std::size_t line = 64;
    volatile std::byte* const lines = at;  // compilers may not see that it is for something
    for (std::size_t done = 0; done < bytes; done += line) lines[done] = std::byte{};
    if (bytes != 0) lines[bytes - 1] = std::byte{};  // of one line more, where `at` is not the first of one
}

}  // namespace ddl::kernel
