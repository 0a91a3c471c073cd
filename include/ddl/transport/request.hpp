// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/transport/descriptor.hpp>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <sys/eventfd.h>
#include <utility>
#include <vector>

namespace ddl {

/// A collective under way. A value; copies stand for the same collective, a move is a copy; letting go of all of them does not stop it.
///
/// The buffers of the collective belong to it until it is done. Any thread may call any member.
class request {
public:
    /// Who carries collectives out, and hears of those who want them done.
    class carrier {
    public:
        carrier() = default;
        carrier(const carrier&) = delete;
        carrier& operator=(const carrier&) = delete;
        virtual ~carrier() = default;
        /// This thread is about to block until `awaited` is done: it may carry out that collective, and those before it.
        virtual void lend_thread(const request& awaited) = 0;
        /// Somebody wants it done who lends no thread.
        virtual void hurry() noexcept = 0;
    };

    /// A request that is done.
    request() : state_{std::make_shared<state>()} { state_->done = true; }
    request(const request&) = default;  // and no moves: what these left would stand for nothing
    request& operator=(const request&) = default;
    ~request() = default;

    /// Whether the collective is done; throws what it threw. Does not block.
    bool test() const {
        if (!is_over()) {
            if (state_->looked.exchange(true)) hurry();  // who looks but once may be about to wait
            return false;
        }
        std::lock_guard lock{state_->mutex};
        if (state_->failure) std::rethrow_exception(state_->failure);
        return true;
    }

    /// Blocks until the collective is done; throws what it threw. Carries it out if nobody has begun to.
    void wait() const {
        if (!is_over() && state_->by) state_->by->lend_thread(*this);
        std::unique_lock lock{state_->mutex};
        state_->changed.wait(lock, [this] { return is_over(); });
        if (state_->failure) std::rethrow_exception(state_->failure);
    }

    /// Calls `then(failure)` once when the collective is done, `failure` being null if it went well: from the thread that
    /// carries the collective out, or at once if it is done already. Those that come before its end are called in the order of their
    /// coming, one after the other; one that comes later is not held up by them. `then` must
    /// not throw, nor call the communicator. In a thread of ours signals are blocked, which a process that `then` starts inherits.
    void on_completion(std::function<void(std::exception_ptr)> then) const {
        std::unique_lock lock{state_->mutex};
        if (!state_->done) {
            state_->then.push_back(std::move(then));
            lock.unlock();
            hurry();
            return;
        }
        const std::exception_ptr failure = state_->failure;
        lock.unlock();
        then(failure);
    }

    /// A file descriptor that becomes readable when the collective is done, for `poll`, `epoll` and event loops. The
    /// request owns it: it lives as long as the last copy.
    int descriptor() const {
        hurry();
        std::lock_guard lock{state_->mutex};
        if (!state_->event) {
            state_->event = ddl::descriptor{::eventfd(state_->done ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK)};
            if (!state_->event) throw refused_by_system("request", -1, "eventfd");
        }
        return state_->event.number();
    }

    /// For those who carry collectives out: a request that is not done, whether it is, whether its end calls a function, and
    /// the end of it.
    static request pending(std::shared_ptr<carrier> by = nullptr) {
        request result;
        result.state_->done = false;
        result.state_->by = std::move(by);
        return result;
    }
    bool is_over() const noexcept { return state_->done; }
    bool calls_back() const {
        std::lock_guard lock{state_->mutex};
        return !state_->then.empty();
    }
    void finish(std::exception_ptr failure) const {
        std::vector<std::function<void(std::exception_ptr)>> then;
        {
            std::lock_guard lock{state_->mutex};
            state_->done = true;
            then.swap(state_->then);
            state_->failure = then.empty() ? std::move(failure) : failure;
            if (state_->event) {
                const eventfd_t one = 1;
                (void)::eventfd_write(state_->event.number(), one);
            }
        }
        state_->changed.notify_all();
        for (const auto& each : then) each(failure);
    }

private:
    void hurry() const noexcept {
        if (!is_over() && state_->by) state_->by->hurry();
    }

    struct state {
        std::mutex mutex;
        std::condition_variable changed;
        std::atomic<bool> done = false;  // set with the lock held
        std::atomic<bool> looked = false;
        std::shared_ptr<carrier> by;
        std::exception_ptr failure;
        std::vector<std::function<void(std::exception_ptr)>> then;
        ddl::descriptor event;
    };
    std::shared_ptr<state> state_;
};

}  // namespace ddl
