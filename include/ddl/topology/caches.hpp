// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <unistd.h>

namespace ddl {

/// Sizes of this machine's data caches in bytes, as the C library tells them.
struct caches {
    std::size_t second;  // of one core
    std::size_t last;    // of all cores that share it

    /// Where the library does not know, what no machine of today falls below.
    static caches of_this_machine() noexcept {
        const std::size_t second = level(_SC_LEVEL2_CACHE_SIZE, std::size_t{256} << 10);
        const std::size_t last = level(_SC_LEVEL3_CACHE_SIZE, 4 * second);
        return {second, last > second ? last : second};
    }

private:
    static std::size_t level(int name, std::size_t otherwise) noexcept {
        const long bytes = ::sysconf(name);
        return bytes > 0 ? static_cast<std::size_t>(bytes) : otherwise;
    }
};

}  // namespace ddl
