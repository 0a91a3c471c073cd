// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/fault_record.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddl {

/// What a rank says when it enters a call: one cache line, so that it arrives whole.
struct alignas(64) notice {
    static constexpr std::size_t room = 48;
    static constexpr std::size_t alignment = 16;  // of what is carried

    /// Its number. Written last: it publishes the line, and the rank's slot and staging.
    std::atomic<std::uint64_t> call;
    std::uint64_t fingerprint;                   // of what is called, for the others to compare
    alignas(alignment) std::byte carried[room];  // a short vector, or where the rank's buffers are

    /// Whether `bytes` of `Element` fit.
    template <class Element>
    static constexpr bool carries(std::size_t bytes) noexcept {
        return bytes <= room && alignof(Element) <= alignment;
    }
};
static_assert(sizeof(notice) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "ddl: flags in shared memory must be lock-free");

/// The memory that all ranks of a group map: one fault record, then a counter, two notices, two slots and a window for each
/// rank.
///
/// What a rank writes before it has heard of the others in a call comes in twos, used in turns: a rank is at most one call
/// ahead of those that still read the other one. A view on bytes that somebody else owns, zeroed before any rank uses them.
class rank_memory {
public:
    static constexpr std::size_t slot_bytes = 512;

    rank_memory(std::byte* base, int size, std::size_t window_bytes) noexcept
        : base_{base}, slots_{base + before_slots(static_cast<std::size_t>(size))},
          windows_{base + before_windows(static_cast<std::size_t>(size))}, window_bytes_{window_bytes} {}

    static constexpr std::size_t bytes(int size, std::size_t window_bytes) noexcept {
        return before_windows(static_cast<std::size_t>(size)) + static_cast<std::size_t>(size) * window_bytes;
    }

    /// Steps completed by a rank, all its calls counted. Written by that rank alone.
    std::atomic<std::uint64_t>& counter(int rank) const noexcept {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(flags(rank));
    }
    ddl::notice& notice(int rank, std::uint64_t call) const noexcept {
        return *reinterpret_cast<ddl::notice*>(flags(rank) + line * (1 + call % 2));
    }
    std::byte* slot(int rank, std::uint64_t call) const noexcept {
        return slots_ + slot_bytes * (2 * static_cast<std::size_t>(rank) + call % 2);
    }
    std::byte* window(int rank) const noexcept { return windows_ + window_bytes_ * static_cast<std::size_t>(rank); }
    std::size_t window_bytes() const noexcept { return window_bytes_; }

    fault_record& first_fault() const noexcept { return *reinterpret_cast<fault_record*>(base_); }

    /// Whether each rank has a core for itself, as the one sees it who founds the group: said once, before others come, so that all
    /// go by the same.
    bool uncrowded() const noexcept { return uncrowded_record().load(std::memory_order_relaxed); }
    void say_uncrowded(bool have) const noexcept { uncrowded_record().store(have, std::memory_order_relaxed); }

private:
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t line = 128;  // two cache lines: neighbours are fetched in pairs
    static constexpr std::size_t flag_lines = 3;

    std::atomic<bool>& uncrowded_record() const noexcept {
        static_assert(sizeof(fault_record) <= page / 2);
        return *reinterpret_cast<std::atomic<bool>*>(base_ + page / 2);
    }
    std::byte* flags(int rank) const noexcept {
        return base_ + page + line * flag_lines * static_cast<std::size_t>(rank);
    }
    static constexpr std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + page - 1) / page * page; }
    static constexpr std::size_t before_slots(std::size_t size) noexcept {
        return page + whole_pages(size * flag_lines * line);
    }
    static constexpr std::size_t before_windows(std::size_t size) noexcept {
        return before_slots(size) + whole_pages(size * 2 * slot_bytes);
    }

    std::byte* base_;
    std::byte* slots_;
    std::byte* windows_;
    std::size_t window_bytes_;
};

}  // namespace ddl
