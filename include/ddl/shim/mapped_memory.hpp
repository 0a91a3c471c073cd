// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/memory_source.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ddl::shim {

/// What was allocated through C, and what of it was given back and has not been used again.
///
/// The latter is known only as long as a communicator of that memory is open: afterwards the system may give its addresses
/// to somebody else.
class mapped_memory {
public:
    static mapped_memory& here() {
        static mapped_memory& kept = *new mapped_memory;  // stays: buffers may be given back while the process ends
        return kept;
    }

    /// A communicator with such memory was opened, or closed.
    void open(memory_source source) {
        const std::lock_guard lock{mutex_};
        if (!(source == memory_source{})) open_.push_back(std::move(source));
    }
    void close(const memory_source& source) noexcept {
        const std::lock_guard lock{mutex_};
        const auto place = std::find(open_.begin(), open_.end(), source);
        if (place == open_.end()) return;
        open_.erase(place);
        if (std::find(open_.begin(), open_.end(), source) != open_.end()) return;
        std::erase_if(given_back_, [&](const auto& one) { return one.second.source == source; });
        given_back_count_.store(given_back_.size(), std::memory_order_release);
    }

    /// `copied`: a process made by fork gets what is in it, and not the memory itself, as of any other memory of its parent.
    void add(std::byte* data, std::size_t bytes, memory_source source, bool copied = false) {
        const std::lock_guard lock{mutex_};
        const auto first = reinterpret_cast<std::uintptr_t>(data);
        forget_given_back(first, first + bytes);
        held_.insert_or_assign(first, block{bytes, std::move(source), copied});
        copied_count_ += copied ? 1U : 0U;
    }

    /// How long the block is that begins at `data`; 0 if none that is held does.
    std::size_t bytes_of(const void* data) noexcept {
        const std::lock_guard lock{mutex_};
        const auto place = held_.find(reinterpret_cast<std::uintptr_t>(data));
        return place == held_.end() ? 0 : place->second.bytes;
    }

    /// The block that begins at `data` is to be pinned as soon as there is a driver for it.
    void want_pinned(const void* data) noexcept {
        const std::lock_guard lock{mutex_};
        const auto place = held_.find(reinterpret_cast<std::uintptr_t>(data));
        if (place == held_.end()) return;
        place->second.to_pin = true;
        to_pin_count_.fetch_add(1, std::memory_order_release);
    }
    /// The beginning and the length of the block into which `data` points, if it is yet to be pinned; else nullptr.
    std::pair<void*, std::size_t> to_pin(const void* data) noexcept {
        if (to_pin_count_.load(std::memory_order_acquire) == 0) [[likely]]
            return {};
        const std::lock_guard lock{mutex_};
        const blocks::value_type* const found = around(data);
        if (found == nullptr || !found->second.to_pin) return {};
        return {reinterpret_cast<void*>(found->first), found->second.bytes};
    }
    /// The block that begins at `data` is pinned in a context of CUDA's, which may use it.
    void pinned(const void* data, void* context) noexcept {
        const std::lock_guard lock{mutex_};
        const auto place = held_.find(reinterpret_cast<std::uintptr_t>(data));
        if (place == held_.end()) return;
        place->second.pinned_in = context;
        forget_to_pin(place->second);
        pinned_count_.fetch_add(1, std::memory_order_release);
    }
    /// Where the block is pinned into which `data` points; nullptr: nowhere.
    void* pinned_in(const void* data) noexcept {
        if (pinned_count_.load(std::memory_order_acquire) == 0) [[likely]]
            return nullptr;
        const std::lock_guard lock{mutex_};
        const blocks::value_type* const found = around(data);
        return found == nullptr ? nullptr : found->second.pinned_in;
    }

    /// False if `data` is not the beginning of a block that is held.
    bool give_back(void* data) {
        std::optional<block> found;
        {
            const std::lock_guard lock{mutex_};
            const auto place = held_.find(reinterpret_cast<std::uintptr_t>(data));
            if (place == held_.end()) return false;
            if (std::find(open_.begin(), open_.end(), place->second.source) != open_.end())
                given_back_.insert_or_assign(place->first, place->second);
            given_back_count_.store(given_back_.size(), std::memory_order_release);
            forget_to_pin(place->second);
            copied_count_ -= place->second.copied ? 1U : 0U;
            if (place->second.pinned_in != nullptr) pinned_count_.fetch_sub(1, std::memory_order_release);
            found.emplace(std::move(place->second));
            held_.erase(place);
        }
        found->source.deallocate(static_cast<std::byte*>(data), found->bytes);
        return true;
    }

    /// Whether `data` points into a block that was given back.
    bool is_given_back(const void* data) noexcept {
        if (given_back_count_.load(std::memory_order_acquire) == 0) [[likely]]
            return false;
        const std::lock_guard lock{mutex_};
        const auto after = given_back_.upper_bound(reinterpret_cast<std::uintptr_t>(data));
        return after != given_back_.begin() && reinterpret_cast<std::uintptr_t>(data) < end_of(*std::prev(after));
    }

private:
    struct block {
        std::size_t bytes;
        memory_source source;
        bool copied;
        void* pinned_in = nullptr;
        bool to_pin = false;
    };

    /// No fork comes while a thread is in here, for its child would find the lock taken for ever. The parent waits until the child
    /// has copied, which closes the pipe then, however it ends.
    mapped_memory() {
        constexpr auto before = [] {
            here().mutex_.lock();
            here().waits_ = here().copied_count_ != 0 && ::pipe2(here().pipe_, O_CLOEXEC) == 0;
        };
        constexpr auto in_parent = [] {
            if (here().waits_) {
                ::close(here().pipe_[1]);
                char none = 0;
                while (::read(here().pipe_[0], &none, 1) < 0 && errno == EINTR) {}
                ::close(here().pipe_[0]);
            }
            here().mutex_.unlock();
        };
        constexpr auto in_child = [] {
            here().copy_for_child();
            if (here().waits_)
                for (const int end : here().pipe_) ::close(end);
            here().mutex_.unlock();
        };
        (void)::pthread_atfork(before, in_parent, in_child);
    }

    /// Puts private pages in the place of shared ones. Where there is no memory for them the child may only read.
    void copy_for_child() noexcept {
        constexpr std::size_t page = memory_source::alignment;
        for (auto place = held_.begin(); place != held_.end();) {
            const std::uintptr_t first = place->first;
            std::uintptr_t end = first;
            // neighbours together, for a process has so many mappings and no more; its own children inherit private pages
            for (; place != held_.end() && place->first == end && std::exchange(place->second.copied, false); ++place)
                end += (place->second.bytes + page - 1) / page * page;
            if (end == first) {
                ++place;
                continue;
            }
            void* const data = reinterpret_cast<void*>(first);
            const std::size_t bytes = end - first;
            void* const copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (copy != MAP_FAILED) std::memcpy(copy, data, bytes);
            if (copy == MAP_FAILED || ::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, data) != data)
                if (::mprotect(data, bytes, PROT_READ) != 0) ::_exit(127);  // what is shared is not to be written
        }
        copied_count_ = 0;
    }

    using blocks = std::map<std::uintptr_t, block>;
    static std::uintptr_t end_of(const blocks::value_type& one) noexcept { return one.first + one.second.bytes; }

    /// The block that is held into which `data` points; nullptr: none.
    const blocks::value_type* around(const void* data) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(data);
        const auto after = held_.upper_bound(at);
        return after != held_.begin() && at < end_of(*std::prev(after)) ? &*std::prev(after) : nullptr;
    }
    void forget_to_pin(block& one) noexcept {
        if (one.to_pin) to_pin_count_.fetch_sub(1, std::memory_order_release);
        one.to_pin = false;
    }

    void forget_given_back(std::uintptr_t first, std::uintptr_t end) {
        auto place = given_back_.lower_bound(first);
        if (place != given_back_.begin() && end_of(*std::prev(place)) > first) --place;
        while (place != given_back_.end() && place->first < end) place = given_back_.erase(place);
        given_back_count_.store(given_back_.size(), std::memory_order_release);
    }

    std::mutex mutex_;
    std::vector<memory_source> open_;  // one for each communicator
    blocks held_;
    blocks given_back_;
    std::atomic<std::size_t> given_back_count_{0};
    std::atomic<std::size_t> pinned_count_{0};
    std::atomic<std::size_t> to_pin_count_{0};
    std::size_t copied_count_ = 0;
    int pipe_[2] = {};
    bool waits_ = false;  // in a fork, for the child
};

}  // namespace ddl::shim
