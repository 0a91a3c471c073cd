// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/fault.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/quiet_thread.hpp>
#include <ddl/transport/request.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ddl {

/// The nonblocking calls of one communicator, carried out one after the other in the order of their call. What they set going,
/// as a stream of a GPU does, may go on side by side.
///
/// A thread that starts with the first of them does so, and so does whoever would only wait for it: in `request::wait`, or in a
/// blocking call, which comes after all that are left. So the order of calls is the same on every rank whoever carries them out.
class call_queue {
public:
    /// Whether a thread may be used at all. Where it may not (MPI initialised for one thread), or the system has none to give,
    /// calls are carried out before `push` returns. `ranks_of_host`: how many ranks like this one share the cores of this host. Where
    /// not all of them can have two, the thread would take the core of one that computes: there it leaves a call for a while to who may
    /// wait for it.
    explicit call_queue(bool may_use_thread = true, int ranks_of_host = 1)
        : line_{std::make_shared<line>(2 * ranks_of_host > cores_for(ranks_of_host))}, may_use_thread_{may_use_thread} {
    }
    call_queue(const call_queue&) = delete;
    call_queue& operator=(const call_queue&) = delete;

    /// In a process made by fork the line stays: its thread, which may have held its locks just then, is the parent's. So it does
    /// where a call has ended the process, whose thread may be the one that waits in it.
    ~call_queue() {
        if (!is_of_parent() && line_->finish()) return;
        static auto& kept = *new std::list<std::shared_ptr<line>>;
        kept.push_back(std::move(line_));
    }

    /// Carries out what is left, then ends the thread. To be called while the communicator is still whole. Does nothing in a call of
    /// its own, from which nobody comes back: it has ended the process.
    void finish() noexcept {
        if (!is_of_parent()) (void)line_->finish();
    }

    /// `settled`, if there is one, says whether what the call has set going has ended, too; only then is the request done. It
    /// does not block, and is asked again and again; what it throws is the request's failure. The next call does not wait for
    /// it. A call that has one is carried out by the queue's thread.
    request push(std::function<void()> call, std::function<bool()> settled = {}) {
        if (may_use_thread_ && line_->has_thread())
            return line_->push({std::move(call), std::move(settled), request::pending(line_)});
        entry next{std::move(call), std::move(settled), request::pending()};
        carry_out(next);
        while (!is_settled(next)) std::this_thread::yield();
        return next.done;
    }

    /// Whether calls may go on in a thread of its own.
    bool may_use_thread() const noexcept { return may_use_thread_; }

    /// Blocks until all calls so far have been carried out. Their errors belong to their requests.
    void drain() { line_->drain(); }

    /// The same of all queues of this process, but of the one in a call of which this thread may be.
    static void drain_all() {
        std::vector<std::shared_ptr<line>> lines;
        {
            const std::lock_guard lock{with_threads::all().mutex};
            for (const std::weak_ptr<line>& each : with_threads::all().lines)
                if (std::shared_ptr<line> here = each.lock()) lines.push_back(std::move(here));
        }
        for (const std::shared_ptr<line>& each : lines)
            if (!each->has_called()) each->drain();
    }

    /// Whether this thread is one that a queue has made.
    static bool is_its_thread() noexcept { return is_its_thread_; }

    /// Whether this process was made by fork since: the calls, and their communicator, are its parent's.
    bool is_of_parent() const noexcept { return ::getpid() != process_; }

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
        next.call = {};
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

    /// The calls, of which requests know, too, that may outlive the queue.
    ///
    /// To wake a thread takes longer than a short call. A program that waits for its calls at once has carried them out by then:
    /// so behind such a call the thread dozes for some time. It looks by itself now and then, and no call wakes it.
    class line final : public request::carrier, public std::enable_shared_from_this<line> {
    public:
        /// `shares_core`: the thread, with one that computes.
        explicit line(bool shares_core) : shares_core_{shares_core} {}

        /// Whether this thread is its own, or in a call of it.
        bool has_called() const noexcept {
            const std::thread::id here = std::this_thread::get_id();
            return here == own_.load(std::memory_order_relaxed) || here == carried_by_.load(std::memory_order_relaxed);
        }

        /// False in a call of its own.
        bool finish() noexcept {
            if (!worker_.joinable()) return true;
            if (has_called()) return false;
            {
                const std::lock_guard lock{mutex_};
                closing_ = true;
            }
            wanted_.notify_one();
            worker_.join();
            return true;
        }

        /// Starts it, if it can be had.
        bool has_thread() noexcept {
            if (worker_.joinable()) return true;
            try {
                with_threads& known = with_threads::all();
                std::list<std::weak_ptr<line>> own{weak_from_this()};
                worker_ = start_(*this);
                own_.store(worker_.get_id(), std::memory_order_relaxed);
                known.take(own);
            } catch (const std::exception&) { return false; }  // before it there is no call that another would overtake
            return true;
        }

        request push(entry next) {
            const request result = next.done;
            const std::lock_guard lock{mutex_};
            const bool is_urgent = next.settled != nullptr;  // something is to be set going, beside which all may go on
            entries_.push_back(std::move(next));
            pending_.store(pending_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            if (is_urgent) wake();
            else if (!dozes_) wanted_.notify_one();
            return result;
        }

        void drain() {
            if (pending_.load(std::memory_order_acquire) == 0) return;
            if (carried_by_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return;  // by this very call
            std::unique_lock lock{mutex_};
            for (;;) {
                while (may_lend()) lend(lock);
                if (pending_.load(std::memory_order_relaxed) == 0) return;
                leave_the_rest();
                changed_.wait(lock);
            }
        }

        void lend_thread(const request& awaited) override {
            std::unique_lock lock{mutex_};
            while (!awaited.is_over() && may_lend()) lend(lock);
            leave_the_rest();
        }

        void hurry() noexcept override {
            if (hurried_.load(std::memory_order_relaxed)) return;
            const std::lock_guard lock{mutex_};
            if (!entries_.empty()) wake();
        }

    private:
        bool may_take() const noexcept { return !is_carried_out_ && !entries_.empty(); }
        entry take() noexcept {
            entry first = std::move(entries_.front());
            entries_.pop_front();
            is_carried_out_ = true;
            carried_by_.store(std::this_thread::get_id(), std::memory_order_relaxed);
            hurried_.store(false, std::memory_order_relaxed);
            ++taken_;
            return first;
        }
        void put_down() noexcept {
            is_carried_out_ = false;
            carried_by_.store({}, std::memory_order_relaxed);
            pending_.store(pending_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
            changed_.notify_all();
            if (closing_) wanted_.notify_one();
        }

        /// Whether a thread that waits may carry out what comes next. Who is called back expects that from no thread of his own.
        bool may_lend() const { return may_take() && !entries_.front().settled && !entries_.front().done.calls_back(); }
        void lend(std::unique_lock<std::mutex>& lock) {
            entry first = take();
            was_prompt_ = true;
            lock.unlock();
            carry_out(first);
            is_settled(first);
            lock.lock();
            put_down();
        }
        void leave_the_rest() noexcept {
            if (may_take()) wake();
        }
        void wake() noexcept {
            hurried_.store(true, std::memory_order_relaxed);
            wanted_.notify_one();
        }

        void work() {
            is_its_thread_ = true;
            // no deque, which takes memory while it is empty: who would hear that there is none?
            std::list<entry> unsettled;
            std::optional<entry> taken;
            std::unique_lock lock{mutex_};
            for (;;) {
                if (unsettled.empty()) rest(lock);
                else wanted_.wait_for(lock, between_looks, [this] { return may_take(); });
                const bool takes = may_take();
                if (!takes && unsettled.empty()) return;
                if (takes) {
                    taken.emplace(take());
                    was_prompt_ = false;
                }
                lock.unlock();
                if (takes) carry_out(*taken);
                std::erase_if(unsettled, is_settled);
                if (takes && !is_settled(*taken)) put_aside(*taken, unsettled);
                taken.reset();
                lock.lock();
                if (takes) put_down();
            }
        }

        /// Where it is asked again and again; without memory for that, at once.
        static void put_aside(entry& carried_out, std::list<entry>& unsettled) {
            try {
                unsettled.push_back(std::move(carried_out));
            } catch (const std::bad_alloc&) {
                while (!is_settled(carried_out)) std::this_thread::yield();
            }
        }

        /// Until there is a call to take, or none will come.
        void rest(std::unique_lock<std::mutex>& lock) {
            const auto is_wanted = [this] { return may_take() || (closing_ && !is_carried_out_); };
            while (!is_wanted()) {
                wanted_.wait(lock);
                if (shares_core_ || (was_prompt_ && !is_wanted())) doze(lock);
            }
        }
        void doze(std::unique_lock<std::mutex>& lock) {
            dozes_ = true;
            const auto is_roused = [this] { return closing_ || hurried_.load(std::memory_order_relaxed); };
            for (int idle = 0; idle < naps;) {
                const std::uint64_t taken = taken_;
                const bool is_left = !entries_.empty();
                if (wanted_.wait_for(lock, shares_core_ ? long_nap : nap, is_roused)) break;
                if (taken != taken_) idle = 0;
                else if (is_left) break;  // for longer than by someone who is about to wait
                else ++idle;
            }
            dozes_ = false;
        }

        static constexpr std::chrono::microseconds nap{50};
        static constexpr std::chrono::microseconds long_nap{1000};
        static constexpr int naps = 20;  // without a call

        // by the code of who made the queue: a plug-in that was lent the communicator may be unloaded before that goes
        std::thread (*const start_)(line&) = [](line& ours) { return quiet_thread([&ours] { ours.work(); }); };
        const bool shares_core_;
        bool closing_ = false;
        bool is_carried_out_ = false;  // the last call that was taken
        bool was_prompt_ = false;      // who waited for it has taken it
        std::uint64_t taken_ = 0;      // calls so far
        bool dozes_ = false;
        std::atomic<bool> hurried_{false};  // set with the lock held, as is `pending_`
        std::atomic<int> pending_{0};
        // no thread_local, of which each library that is built with hidden symbols has its own
        std::atomic<std::thread::id> carried_by_{};  // the last call that was taken, until it is done
        std::deque<entry> entries_;
        std::mutex mutex_;
        std::condition_variable wanted_;   // by the thread
        std::condition_variable changed_;  // for those who drain
        std::thread worker_;
        std::atomic<std::thread::id> own_{};  // its, for those who ask beside who ends it
    };

    /// The lines of this process that have a thread, in the list from then on; no fork comes while it changes.
    struct with_threads {
        std::mutex mutex;
        std::list<std::weak_ptr<line>> lines;
        with_threads() {
            (void)::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                                   [] { all().mutex.unlock(); });
        }
        static with_threads& all() {
            static with_threads& kept = *new with_threads;  // stays: communicators may be static
            return kept;
        }
        void take(std::list<std::weak_ptr<line>>& own) noexcept {
            const std::lock_guard lock{mutex};
            std::erase_if(lines, [](const std::weak_ptr<line>& each) { return each.expired(); });
            lines.splice(lines.end(), own);
        }
    };

    static constexpr std::chrono::microseconds between_looks{20};  // at what has been set going

    static inline thread_local bool is_its_thread_ = false;

    std::shared_ptr<line> line_;
    bool may_use_thread_;
    pid_t process_ = ::getpid();
};

/// The queue of a communicator; throws where that was moved from.
inline call_queue& queue_in(const std::unique_ptr<call_queue>& place, const call_site& where, int rank) {
    if (!place) [[unlikely]]
        throw moved_from(where, rank);
    return *place;
}
/// Carries out pending calls, which know their communicator where it lies: before that moves.
inline void settle(const std::unique_ptr<call_queue>& place) noexcept {
    if (place) place->drain();
}

}  // namespace ddl
