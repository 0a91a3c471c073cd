// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/execution_space.hpp>
#include <ddl/transport/patience.hpp>

#include <atomic>
#include <cstring>

namespace ddl {

/// The execution space of a host: one thread is a block of one thread. For tests of what a GPU runs.
class host_block {
public:
    host_block(int rank, int block, int blocks, timeout limit = timeout{}) noexcept
        : rank_{rank}, block_{block}, blocks_{blocks}, limit_{limit} {}

    int rank() const noexcept { return rank_; }
    int block() const noexcept { return block_; }
    int blocks() const noexcept { return blocks_; }
    static constexpr std::size_t thread() noexcept { return 0; }
    static constexpr std::size_t threads() noexcept { return 1; }
    static constexpr void barrier() noexcept {}
    static constexpr bool all(bool ours) noexcept { return ours; }

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
};

static_assert(execution_space<host_block>);

}  // namespace ddl
