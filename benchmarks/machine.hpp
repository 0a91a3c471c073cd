// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <unistd.h>

#include "contender.hpp"

// What a figure depends on besides the library.

inline std::string host_name() {
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
    return name;
}

inline long processors() { return ::sysconf(_SC_NPROCESSORS_ONLN); }

/// The caches of a processor as the C library knows them: `L1d 32 KiB, L2 1024 KiB, L3 32768 KiB`.
inline std::string caches() {
    std::string text;
    [[maybe_unused]] const auto add = [&](const char* level, int name) {
        const long bytes = ::sysconf(name);
        if (bytes <= 0) return;
        text += std::string(text.empty() ? "" : ", ") + level + " " + std::to_string(bytes / 1024) + " KiB";
    };
#ifdef _SC_LEVEL1_DCACHE_SIZE  // of the GNU C library
    add("L1d", _SC_LEVEL1_DCACHE_SIZE);
    add("L2", _SC_LEVEL2_CACHE_SIZE);
    add("L3", _SC_LEVEL3_CACHE_SIZE);
#endif
    return text.empty() ? "unknown" : text;
}

inline std::string compiler() {
#ifdef __clang__
    std::string text = __VERSION__;
#else
    std::string text = "g++ " __VERSION__;
#endif
#ifndef __OPTIMIZE__
    text += ", NOT optimised";
#endif
    return text;
}

/// Seconds between two looks at the clock that follow each other: no call can seem to be quicker.
inline double clock_cost() {
    double least = 1;
    for (int i = 0; i < 1000; ++i) least = std::min(least, seconds_of([] {}));
    return least;
}
