// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ddl::kernel {

/// Asks for the cache lines of `bytes` bytes at `at`, to store to them: other cores give their copies up, and the stores that
/// follow need not wait for that. Does not block, and changes no byte. A line that is not stored to soon goes back to
/// whoever reads it.
inline void fetch_to_store(const std::byte* at, std::size_t bytes) noexcept {
    constexpr std::size_t line = 64;
    const auto ask = [](const std::byte& place) {
#if defined(__x86_64__)
        asm volatile("prefetchw %0" : : "m"(place));  // compilers for any x86-64 ask for a line to read instead
#else
        __builtin_prefetch(&place, 1);
#endif
    };
    for (std::size_t done = 0; done < bytes; done += line) ask(at[done]);
    if (bytes != 0) ask(at[bytes - 1]);  // of one line more, where `at` is not the first of one
}

}  // namespace ddl::kernel
