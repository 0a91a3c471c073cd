// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/request.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

namespace ddl {

/// The nonblocking calls of one communicator, carried out one after the other in the order of their call. What they set going,
/// as a stream of a GPU does, may go on side by side.
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

    /// `settled`, if there is one, says whether what the call has set going has ended, too; only then is the request done. It
    /// does not block, and is asked again and again; what it throws is the request's failure. The next call does not wait for
    /// it.
    request push(std::function<void()> call, std::function<bool()> settled = {}) {
        entry next{std::move(call), std::move(settled), request::pending()};
        const request result = next.done;
        if (!may_use_thread_) {
            carry_out(next);
            while (!is_settled(next)) std::this_thread::yield();
            return result;
        }
        {
            std::lock_guard lock{mutex_};
            entries_.push_back(std::move(next));
            pending_.store(pending_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            if (!worker_.joinable()) worker_ = std::thread{[this] { work(); }};
        }
        changed_.notify_all();
        return result;
    }

    /// Blocks until all calls so far have been carried out. Their errors belong to their requests.
    void drain() {
        if (pending_.load(std::memory_order_acquire) == 0 || carrying_out_ == this) return;
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return pending_.load(std::memory_order_relaxed) == 0; });
    }

    /// Whether this thread is one that carries out calls of others.
    static bool is_its_thread() noexcept { return carrying_out_ != nullptr; }

private:
    struct entry {
        std::function<void()> call;
        std::function<bool()> settled;
        request done;
        std::exception_ptr failure = nullptr;  // of the call
    };

    static void carry_out(entry& next) {
        try {
            next.call();
        } catch (...) { next.failure = std::current_exception(); }
    }

    /// Whether it is over; then the request knows.
    static bool is_settled(entry& carried_out) {
        std::exception_ptr failure = std::move(carried_out.failure);
        try {
            if (!failure && carried_out.settled && !carried_out.settled()) return false;
        } catch (...) { failure = std::current_exception(); }
        carried_out.done.finish(std::move(failure));  // whoever waits may be the last to let go of it
        return true;
    }

    void work() {
        carrying_out_ = this;
        std::deque<entry> unsettled;
        std::unique_lock lock{mutex_};
        const auto wanted = [this] { return closing_ || !entries_.empty(); };
        for (;;) {
            if (unsettled.empty()) changed_.wait(lock, wanted);
            else changed_.wait_for(lock, between_looks, [this] { return !entries_.empty(); });
            const bool carries = !entries_.empty();
            if (!carries && unsettled.empty()) return;
            if (carries) {
                unsettled.push_back(std::move(entries_.front()));
                entries_.pop_front();
            }
            lock.unlock();
            if (carries) {
                carry_out(unsettled.back());
                unsettled.back().call = {};
            }
            std::erase_if(unsettled, is_settled);
            lock.lock();
            if (!carries) continue;
            pending_.store(pending_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
            changed_.notify_all();
        }
    }

    static constexpr std::chrono::microseconds between_looks{20};  // at what has been set going

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
