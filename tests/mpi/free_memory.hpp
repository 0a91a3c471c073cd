// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <fstream>
#include <unistd.h>

/// Bytes of memory that may be had here: those that are free, or as many as the container may have at most.
inline double free_memory() {
    double bytes = static_cast<double>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
    for (const char* limit : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        std::ifstream file{limit};
        if (double most = 0; file >> most) bytes = std::min(bytes, most);
    }
    return bytes;
}
