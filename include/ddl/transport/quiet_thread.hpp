// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX has more in it than <csignal>
#include <thread>
#include <utility>

namespace ddl {

/// A thread of the library's own. It takes no signal that is sent to the process, which a program may keep for one of its threads
/// by `sigwait`, or for a handler there. It does take those of its own faults. Throws what `std::thread` throws.
template <class Body>
std::thread quiet_thread(Body&& body) {
    struct quiet {
        sigset_t before;
        quiet() noexcept {
            sigset_t all;
            ::sigfillset(&all);
            for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) ::sigdelset(&all, fault);
            ::pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        quiet(const quiet&) = delete;
        ~quiet() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    };
    const quiet inherited;
    return std::thread{std::forward<Body>(body)};
}

}  // namespace ddl
