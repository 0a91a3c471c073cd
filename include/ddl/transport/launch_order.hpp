// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/patience.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace ddl {

/// One order for the launches of groups of threads, each thread on a device of its own: what one group launches on all its
/// devices comes before or after what another does on all of theirs. Grids that wait for each other then cannot start in
/// opposite order on two devices that groups share.
class launch_order {
public:
    static launch_order& of_process() {
        static launch_order& one = *new launch_order;  // stays: the end of a condition waits for who waits for it
        return one;
    }

    /// The turns of a group. Its members launch equally often, each between `enter` and `leave`; the turn ends when all have.
    class turns {
    public:
        explicit turns(int members, launch_order& order = of_process())
            : order_{order}, launches_(static_cast<std::size_t>(members)) {}
        turns(const turns&) = delete;
        turns& operator=(const turns&) = delete;
        ~turns() { abandon(); }

        /// Waits until no other group has the turn, and takes it. False if it had to wait for longer than `limit`, or has no
        /// turns any more.
        [[nodiscard]] bool enter(timeout limit) {
            std::unique_lock lock{order_.mutex_};
            const std::chrono::duration<double> most{std::min(limit.seconds, 1e6)};
            const auto is_free = [&] { return abandoned_ || order_.holder_ == nullptr || order_.holder_ == this; };
            if (!order_.changed_.wait_for(lock, most, is_free) || abandoned_) return false;
            order_.holder_ = this;
            ++inside_;
            return true;
        }
        /// `member` has launched.
        void leave(int member) {
            const std::lock_guard lock{order_.mutex_};
            ++launches_[static_cast<std::size_t>(member)];
            --inside_;
            const auto uneven = std::adjacent_find(launches_.begin(), launches_.end(), std::not_equal_to<>{});
            if (order_.holder_ == this && inside_ == 0 && uneven == launches_.end()) release();
        }
        /// A group that has failed launches nothing any more: others need not wait for it.
        void abandon() noexcept {
            const std::lock_guard lock{order_.mutex_};
            abandoned_ = true;
            if (order_.holder_ == this) release();
            order_.changed_.notify_all();
        }
        bool is_abandoned() const {
            const std::lock_guard lock{order_.mutex_};
            return abandoned_;
        }

    private:
        void release() noexcept {
            order_.holder_ = nullptr;
            order_.changed_.notify_all();
        }

        launch_order& order_;
        std::vector<unsigned long> launches_;
        int inside_ = 0;  // members between `enter` and `leave`: one may be at its next launch already
        bool abandoned_ = false;
    };

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    const turns* holder_ = nullptr;
};

}  // namespace ddl
