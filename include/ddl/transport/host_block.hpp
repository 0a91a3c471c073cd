// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/execution_space.hpp>
#include <ddl/transport/patience.hpp>

#include <atomic>
#include <cstring>
#include <thread>

namespace ddl {

/// What threads of a host share that are one block: its barrier.
class host_threads {
public:
    explicit host_threads(int count) noexcept : count_{static_cast<std::size_t>(count)} {}

    std::size_t count() const noexcept { return count_; }
    void meet() noexcept {
        // each arrival acquires what those before released, and who leaves has seen the last of its turn
        const std::size_t turn = arrivals_.fetch_add(1, std::memory_order_acq_rel) / count_;
        while (arrivals_.load(std::memory_order_acquire) / count_ == turn) std::this_thread::yield();
    }
    /// How often a thread has refused, in all meetings up to this one.
    std::size_t refusals_with(bool refuses) noexcept {
        if (refuses) refusals_.fetch_add(1, std::memory_order_relaxed);
        meet();
        const std::size_t all = refusals_.load(std::memory_order_relaxed);
        meet();  // before a thread refuses in the next
        return all;
    }

private:
    std::size_t count_;
    std::atomic<std::size_t> arrivals_ = 0;
    std::atomic<std::size_t> refusals_ = 0;
};

/// The execution space of a host: a thread is a block, or one of several that are. For tests of what a GPU runs.
class host_block {
public:
    host_block(int rank, int block, int blocks, timeout limit = timeout{}) noexcept
        : rank_{rank}, block_{block}, blocks_{blocks}, limit_{limit} {}
    /// Thread `thread` of `together`, which outlives it.
    host_block(int rank, int block, int blocks, timeout limit, host_threads& together, std::size_t thread) noexcept
        : rank_{rank}, block_{block}, blocks_{blocks}, limit_{limit}, together_{&together}, thread_{thread} {}

    int rank() const noexcept { return rank_; }
    int block() const noexcept { return block_; }
    int blocks() const noexcept { return blocks_; }
    std::size_t thread() const noexcept { return thread_; }
    std::size_t threads() const noexcept { return together_ == nullptr ? 1 : together_->count(); }
    void barrier() const noexcept {
        if (together_ != nullptr) together_->meet();
    }
    bool all(bool ours) noexcept {
        if (together_ == nullptr) return ours;
        const std::size_t before = refusals_;
        refusals_ = together_->refusals_with(!ours);
        return refusals_ == before;
    }

    static std::uint64_t load_relaxed(std::uint64_t* flag) noexcept {
        return std::atomic_ref{*flag}.load(std::memory_order_relaxed);
    }
    static std::uint64_t load_acquire(std::uint64_t* flag) noexcept {
        return std::atomic_ref{*flag}.load(std::memory_order_acquire);
    }
    static void store_relaxed(std::uint64_t* flag, std::uint64_t value) noexcept {
        std::atomic_ref{*flag}.store(value, std::memory_order_relaxed);
    }
    static void store_release(std::uint64_t* flag, std::uint64_t value) noexcept {
        std::atomic_ref{*flag}.store(value, std::memory_order_release);
    }

    template <class Ready, class Missing>
    bool wait(const Ready& ready, const Missing& missing) {
        if (missing_ >= 0) return false;
        patience waiting{limit_, patience::crowded};
        while (!ready())
            if (waiting.pause() && waiting.expired()) {
                missing_ = missing();
                return false;
            }
        return true;
    }
    /// The rank that did not come, -1 if none was missed.
    int missing() const noexcept { return missing_; }

    static kernel::packet load(const std::byte* from) noexcept {
        kernel::packet result;
        std::memcpy(&result, from, sizeof result);
        return result;
    }
    static void store(std::byte* to, const kernel::packet& value) noexcept { std::memcpy(to, &value, sizeof value); }

    template <class Element, class Accumulator>
    static void widen(const kernel::packet& from,
                      kernel::values_of<Accumulator, kernel::packet_elements<Element>>& wide) {
        kernel::widen<Element>(from, wide);
    }
    template <class Element, class Value>
    static kernel::packet narrow(const kernel::values_of<Value, kernel::packet_elements<Element>>& wide) {
        return kernel::narrow<Element>(wide);
    }

private:
    int rank_;
    int block_;
    int blocks_;
    timeout limit_;
    int missing_ = -1;
    host_threads* together_ = nullptr;
    std::size_t thread_ = 0;
    std::size_t refusals_ = 0;  // that `together_` had seen
};

static_assert(execution_space<host_block>);

}  // namespace ddl
