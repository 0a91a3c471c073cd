// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace ddl {

/// Advises the system to back long memory with huge pages, before it is touched for the first time. Only advice: a system
/// that does not allow it goes on with its ordinary pages, and so does memory too short for one huge page.
inline void advise_huge_pages(void* data, std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
    constexpr std::size_t worthwhile = std::size_t{4} << 20;  // one huge page of 2 MiB at least, however it is aligned
    const long page = ::sysconf(_SC_PAGESIZE);
    if (bytes < worthwhile || page <= 0) return;
    const auto mask = static_cast<std::uintptr_t>(page) - 1;
    const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(data) + mask) & ~mask;
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + bytes) & ~mask;
    if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#else
    (void)data, (void)bytes;
#endif
}

}  // namespace ddl
