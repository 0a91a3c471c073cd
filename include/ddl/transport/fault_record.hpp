// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/fault.hpp>

#include <atomic>

namespace ddl {

/// The first fault of a group of ranks. Any thread may record one or look for it; a zeroed one in memory that processes share
/// holds none.
class fault_record {
public:
    fault_record() = default;
    /// While nobody records one.
    fault_record(const fault_record& from) noexcept : state_{from.state_.load()}, what_{from.what_} {}
    fault_record& operator=(const fault_record&) = delete;

    /// The first fault counts. False if there is one.
    bool record(const fault& what) noexcept {
        int expected = none;
        if (!state_.compare_exchange_strong(expected, begun)) return false;
        what_ = what;
        state_.store(readable, std::memory_order_release);  // met by the acquire in `known`
        return true;
    }
    /// Whether there is one. Who records it may end before it can be read.
    bool is_taken() const noexcept { return state_.load(std::memory_order_acquire) != none; }
    /// The fault, or null until it can be read.
    const fault* known() const noexcept {
        return state_.load(std::memory_order_acquire) == readable ? &what_ : nullptr;
    }

private:
    enum : int { none, begun, readable };

    std::atomic<int> state_{none};
    fault what_;
};

}  // namespace ddl
