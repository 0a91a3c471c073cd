// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/topology/caches.hpp>

#include <algorithm>
#include <sched.h>
#include <stdexcept>
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

/// One core a rank, whoever started it: the same for all contenders.
inline void bind_to_core(int rank) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<std::size_t>(rank % processors()), &own);
    if (::sched_setaffinity(0, sizeof own, &own) != 0) throw std::runtime_error("cannot bind a rank to its core");
}

/// The caches over this core: `L2 1024 KiB, last 32768 KiB`.
inline std::string caches() {
    const ddl::caches known = ddl::caches::of_this_machine();
    return "L2 " + std::to_string(known.second / 1024) + " KiB, last " + std::to_string(known.last / 1024) + " KiB";
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
