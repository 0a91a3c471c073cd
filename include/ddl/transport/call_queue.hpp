// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/request.hpp>

#include <atomic>
#include <deque>
#include <thread>

namespace ddl {

/// The nonblocking calls of one communicator, carried out one after the other in the order of their call.
///
/// The thread that does so starts with the first of them. Blocking calls wait until none is left, so that the order of
/// calls is the same on every rank whoever carries them out.
class call_queue {
public:
    /// Whether a thread may be used at all. Where it may not (MPI initialised for one thread), calls are carried out
    /// before `push` returns.
    explicit call_queue(bool may_use_thread = true) noexcept : may_use_thread_{may_use_thread} {}
    call_queue(const call_queue&) = delete;
    call_queue& operator=(const call_queue&) = delete;

    ~call_queue() { finish(); }

    /// Carries out what is left, then ends the thread. To be called while the communicator is still whole.
    void finish() noexcept {
        if (!worker_.joinable()) return;
        {
            const std::lock_guard lock{mutex_};
            closing_ = true;
        }
        changed_.notify_all();
        worker_.join();
    }

    request push(std::function<void()> call) {
        request result = request::pending();
        if (!may_use_thread_) {
            carry_out({std::move(call), result});
            return result;
        }
        {
            std::lock_guard lock{mutex_};
            entries_.push_back({std::move(call), result});
            pending_.store(pending_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            if (!worker_.joinable()) worker_ = std::thread{[this] { work(); }};
        }
        changed_.notify_all();
        return result;
    }

    /// Blocks until all calls so far are done. Their errors belong to their requests.
    void drain() {
        if (pending_.load(std::memory_order_acquire) == 0 || carrying_out_ == this) return;
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return pending_.load(std::memory_order_relaxed) == 0; });
    }

private:
    struct entry {
        std::function<void()> call;
        request done;
    };

    static void carry_out(const entry& next) {
        std::exception_ptr failure;
        try {
            next.call();
        } catch (...) { failure = std::current_exception(); }
        next.done.finish(std::move(failure));  // whoever waits may be the last to let go of it
    }

    void work() {
        carrying_out_ = this;
        std::unique_lock lock{mutex_};
        for (;;) {
            changed_.wait(lock, [this] { return closing_ || !entries_.empty(); });
            if (entries_.empty()) return;
            entry next = std::move(entries_.front());
            entries_.pop_front();
            lock.unlock();
            carry_out(next);
            next = {};
            lock.lock();
            pending_.store(pending_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
            changed_.notify_all();
        }
    }

    static inline thread_local const call_queue* carrying_out_ = nullptr;  // whose thread this is

    bool may_use_thread_;
    bool closing_ = false;
    std::atomic<int> pending_{0};
    std::deque<entry> entries_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::thread worker_;
};

}  // namespace ddl
