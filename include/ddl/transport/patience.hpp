// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <locale.h>  // NOLINT(modernize-deprecated-headers): POSIX has more in it than <clocale>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace ddl {

/// How long a rank waits for its peers before it gives up with `errc::timeout`.
struct timeout {
    double seconds = 600;
    constexpr explicit timeout(double limit = 600) : seconds{limit} {
        if (!(limit >= 0))  // a NaN would never pass
            throw error(errc::invalid_argument, "timeout", -1, -1, "the timeout is %g s; pass 0 or more", limit);
    }
    /// From any `std::chrono` duration, which has a unit: it need not be named a timeout where one is asked for.
    template <class Duration>
        requires requires { typename Duration::period; }
    // NOLINTNEXTLINE(google-explicit-constructor)
    constexpr timeout(const Duration& limit)
        : timeout{static_cast<double>(limit.count()) * Duration::period::num / Duration::period::den} {}
};

/// What the variable DDL_TIMEOUT says, in seconds; the timeout of a wait where it is not set.
inline timeout timeout_from_environment() {
    const char* const words = std::getenv("DDL_TIMEOUT");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
    if (words == nullptr || *words == '\0') return timeout{};
    static const locale_t point = ::newlocale(LC_ALL_MASK, "C", nullptr);  // whatever the program's own says of numbers
    char* end = nullptr;
    const double seconds = ::strtod_l(words, &end, point);
    if (*end != '\0' || !(seconds > 0))
        throw error(errc::invalid_argument, "timeout", -1, -1, "DDL_TIMEOUT is \"%.40s\"; it takes seconds, above 0",
                    words);
    return timeout{seconds};
}

/// How long one who leaves a call that has failed waits for those who may still use its buffers, however short its own waits are:
/// who folds or copies for longer is taken for dead.
inline constexpr timeout limit_of_leaver{10.0};

/// Seconds on a clock that never jumps.
inline double now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Cores that `ranks` processes or threads like this one have for themselves. Launchers bind each rank to a core of its own:
/// one core is taken for that.
inline int cores_for(int ranks) noexcept {
    cpu_set_t cores;
    const int usable = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    if (usable > 1) return usable;
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    return online < ranks ? 1 : ranks;
}

/// The core that this thread is bound to; -1 if it may run on several.
inline int bound_core() noexcept {
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) != 1) return -1;
    std::size_t core = 0;
    while (!CPU_ISSET(core, &cores)) ++core;
    return static_cast<int>(core);
}

/// One wait: first spins, for a peer that is about to arrive; then yields, for a peer that needs this core; then sleeps.
///
/// `pause()` is called each time the awaited thing is not there yet. Looking at the clock and at the peers' health costs
/// more than a spin, so `pause` tells now and then that it is time to.
class patience {
public:
    /// Turns spent spinning, where every rank can have a core of its own, and where ranks are in each other's way.
    static constexpr int alone = 200;
    static constexpr int crowded = 20;
    /// Turns spent yielding, where a sleep would be long beside what is awaited, and where others have use for the core.
    static constexpr int long_stay = 2'000;
    static constexpr int short_stay = 200;

    explicit patience(timeout limit, int spins = alone, int yields = long_stay) noexcept
        : limit_{limit.seconds}, spins_{spins}, yields_{yields} {}

    /// Lets some time pass. True if the caller should look for dead peers and ask `expired()`.
    bool pause() noexcept {
        ++turns_;
        if (turns_ < spins_) {
            if (turns_ > eager) relax();
            return false;
        }
        if (turns_ < spins_ + yields_) {
            ::sched_yield();
            return turns_ % 64 == 0;
        }
        const timespec nap{0, 50'000};
        // not by nanosleep(), where a thread may be cancelled: peers use what it would unwind
        ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, nullptr);
        return turns_ % 16 == 0;
    }

    /// Whether the limit, from the first question on, had passed at the question before already: who asks has looked once more since.
    /// Of a time in which the process was stopped, perhaps with its peers, not all counts.
    bool expired() noexcept {
        const double time = now();
        if (asked_ != 0) waited_ += std::min(time - asked_, std::max(1.0, limit_ / 8));
        asked_ = time;
        return waited_ > limit_ && std::exchange(passed_, true);
    }

    double limit() const noexcept { return limit_; }

private:
    static constexpr int eager = 128;  // turns without a pause, for what is on its way already
    double limit_;
    int spins_;
    int yields_;
    long turns_ = 0;
    double asked_ = 0;
    double waited_ = 0;
    bool passed_ = false;
};

}  // namespace ddl
