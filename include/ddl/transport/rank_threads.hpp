// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/transport/fault.hpp>

#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace ddl {

/// What ranks left with, of which one says most: rather what befell a rank than what others heard of it. Of equals the first.
class exceptions_of_ranks {
public:
    /// The exception that is being handled.
    void note() noexcept {
        const int weight = weight_of_current();
        const std::lock_guard lock{mutex_};
        if (first_ && weight <= weight_) return;
        first_ = std::current_exception();
        weight_ = weight;
    }
    void rethrow() const {
        if (first_) std::rethrow_exception(first_);
    }

private:
    static int weight_of_current() noexcept {
        try {
            throw;
        } catch (const peers_fault&) { return 0; } catch (const error& known) {
            if (known.code() == errc::peer_lost) return 0;  // it left with an exception of its own, if there is one
            return known.code() == errc::mismatch ? 1 : 2;  // of a rank whose arguments make no sense others say this
        } catch (...) { return 2; }
    }

    std::mutex mutex_;
    std::exception_ptr first_;
    int weight_ = 0;
};

/// Runs `body(communicator)` on so many new threads, each with what `make(rank)` gives, and waits for all of them. If one throws, or
/// cannot be had, the others hear of it: by its communicator, or by `tell(code, words)` where it has none yet. Throws what then
/// says most.
template <class Make, class Body, class Tell>
void run_in_threads(const char* operation, int ranks, const Make& make, Body& body, const Tell& tell) {
    if (ranks < 1) throw error(errc::invalid_argument, operation, -1, -1, "%d ranks; ask for one or more", ranks);
    exceptions_of_ranks failures;
    std::vector<std::thread> workers;
    workers.reserve(static_cast<std::size_t>(ranks));
    const auto work = [&](int rank) {
        std::optional<decltype(make(rank))> communicator;
        try {
            communicator.emplace(make(rank));
            body(*communicator);
        } catch (...) {
            failures.note();
            constexpr const char* words = "a thread of the team left with an exception";
            if (communicator) communicator->fail(errc::peer_lost, words);
            else tell(errc::peer_lost, words);
        }
    };
    int started = 0;
    try {
        try {
            for (; started < ranks; ++started) workers.emplace_back(work, started);
        } catch (const std::exception& refusal) {  // those that run already wait for the rest
            throw error(errc::system, operation, -1, -1,
                        "the system refuses a thread for rank %d of %d (%s); ask for fewer ranks, or lift ulimit -u",
                        started, ranks, refusal.what());
        }
    } catch (const error& failure) {
        failures.note();
        tell(failure.code(), failure.what());
    }
    for (std::thread& worker : workers) worker.join();
    failures.rethrow();
}

}  // namespace ddl
