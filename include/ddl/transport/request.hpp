// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace ddl {

/// A collective under way. A value; copies stand for the same collective; letting go of all of them does not stop it.
///
/// The buffers of the collective belong to it until it is done. Any thread may call any member.
class request {
public:
    /// A request that is done.
    request() : state_{std::make_shared<state>()} { state_->done = true; }

    /// Whether the collective is done; throws what it threw. Does not block.
    bool test() const {
        std::lock_guard lock{state_->mutex};
        if (state_->done && state_->failure) std::rethrow_exception(state_->failure);
        return state_->done;
    }

    /// Blocks until the collective is done; throws what it threw.
    void wait() const {
        std::unique_lock lock{state_->mutex};
        state_->changed.wait(lock, [this] { return state_->done; });
        if (state_->failure) std::rethrow_exception(state_->failure);
    }

    /// Calls `then(failure)` once when the collective is done, `failure` being null if it went well: from the thread that
    /// carries the collective out, or at once if it is done already. `then` must not throw, nor call the communicator.
    void on_completion(std::function<void(std::exception_ptr)> then) const {
        std::unique_lock lock{state_->mutex};
        if (!state_->done) {
            state_->then = std::move(then);
            return;
        }
        const std::exception_ptr failure = state_->failure;
        lock.unlock();
        then(failure);
    }

    /// A file descriptor that becomes readable when the collective is done, for `poll`, `epoll` and event loops. The
    /// request owns it: it lives as long as the last copy.
    int descriptor() const {
        std::lock_guard lock{state_->mutex};
        if (state_->event < 0) {
            state_->event = ::eventfd(state_->done ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
            if (state_->event < 0)
                throw error(errc::system, "request", -1, -1, "no event descriptor is left for this process");
        }
        return state_->event;
    }

    /// For those who carry collectives out: a request that is not done, and the end of it.
    static request pending() {
        request result;
        result.state_->done = false;
        return result;
    }
    void finish(std::exception_ptr failure) const {
        std::function<void(std::exception_ptr)> then;
        {
            std::lock_guard lock{state_->mutex};
            state_->done = true;
            then = std::move(state_->then);
            state_->failure = then ? failure : std::move(failure);
            if (state_->event >= 0) {
                const eventfd_t one = 1;
                (void)::eventfd_write(state_->event, one);
            }
        }
        state_->changed.notify_all();
        if (then) then(std::move(failure));
    }

private:
    struct state {
        std::mutex mutex;
        std::condition_variable changed;
        bool done = false;
        std::exception_ptr failure;
        std::function<void(std::exception_ptr)> then;
        int event = -1;
        ~state() {
            if (event >= 0) ::close(event);
        }
    };
    std::shared_ptr<state> state_;
};

}  // namespace ddl
