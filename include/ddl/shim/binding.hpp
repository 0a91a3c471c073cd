// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <sched.h>

namespace ddl::shim {

/// On how many processors the calling thread might run, and may now.
struct binding {
    int before = 0;
    int after = 0;
};

/// Lets every thread of this process run on each processor that the system leaves to it, so that one which was bound to a
/// processor that others use gets away from there. What the system refuses stays as it is.
inline binding unbind() noexcept {
    struct processors {
        cpu_set_t sets[8];  // more than any kernel of today numbers
        int count() noexcept {
            std::memset(sets, 0, sizeof sets);
            return ::sched_getaffinity(0, sizeof sets, sets) == 0 ? CPU_COUNT_S(sizeof sets, sets) : 0;
        }
    };
    processors now;
    binding result{now.count(), 0};
    processors all;
    std::memset(&all, 0xff, sizeof all);
    if (DIR* const threads = ::opendir("/proc/self/task")) {
        while (const dirent* const each = ::readdir(threads))  // NOLINT(concurrency-mt-unsafe): a DIR of our own
            if (const int thread = std::atoi(each->d_name); thread > 0)
                ::sched_setaffinity(thread, sizeof all.sets, all.sets);
        ::closedir(threads);
    }
    result.after = now.count();
    return result;
}

}  // namespace ddl::shim
