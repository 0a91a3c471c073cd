// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <pthread.h>

namespace ddl::shim {

/// How many forks this process is behind the one that loaded the library. What was opened when there were fewer is its parent's: the
/// threads that carry out its calls are there, and its peers know of no other.
class forks {
public:
    static unsigned so_far() noexcept { return count_.load(std::memory_order_relaxed); }

    /// While it is held no fork comes. For locks of the system, which a fork beside another thread leaves taken in the child.
    static std::mutex& held_off() noexcept { return mutex_; }

private:
    static inline std::atomic<unsigned> count_{0};
    static inline std::mutex mutex_;
    static inline const int registered_ = ::pthread_atfork([] { mutex_.lock(); }, [] { mutex_.unlock(); },
                                                           [] {
                                                               ++count_;
                                                               mutex_.unlock();
                                                           });
};

}  // namespace ddl::shim
