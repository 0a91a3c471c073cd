// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <sched.h>
#include <unistd.h>

namespace ddl {

/// Sizes in bytes of the data caches over the core that asks, as Linux tells them, else as the C library does: of a processor
/// with several last caches that one may name their sum.
struct caches {
    std::size_t second;  // of one core
    std::size_t last;    // of all cores that share it

    /// What neither knows is what no machine of today falls below. Reads some small files: tens of microseconds.
    static caches of_this_machine() noexcept {
        caches found{};
        const int core = ::sched_getcpu();
        for (int index = 0; core >= 0 && read(core, index, found); ++index) {}
#ifdef __GLIBC__  // the C library of others does not know
        if (found.second == 0) found.second = level(_SC_LEVEL2_CACHE_SIZE);
        if (found.last == 0) found.last = level(_SC_LEVEL3_CACHE_SIZE);
#endif
        if (found.second == 0) found.second = std::size_t{256} << 10;
        if (found.last == 0) found.last = 4 * found.second;
        return {found.second, found.last > found.second ? found.last : found.second};
    }

private:
    /// Adds what Linux says of one cache of a core. False if it knows of no such one.
    static bool read(int core, int index, caches& found) noexcept {
        const int depth = static_cast<int>(number(core, index, "level"));
        if (depth == 2) found.second = number(core, index, "size");
        if (depth == 3) found.last = number(core, index, "size");
        return depth > 0;
    }

    /// The number in a file of sysfs, in units where it names one; 0 without that file.
    static std::size_t number(int core, int index, const char* name) noexcept {
        char path[96];
        std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", core, index, name);
        std::FILE* const file = std::fopen(path, "re");
        if (file == nullptr) return 0;
        std::size_t value = 0;
        char unit = 0;
        const int words = std::fscanf(file, "%zu%c", &value, &unit);
        std::fclose(file);
        return words < 1 ? 0 : value << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
    }

    [[maybe_unused]] static std::size_t level(int name) noexcept {
        const long bytes = ::sysconf(name);
        return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
    }
};

}  // namespace ddl
