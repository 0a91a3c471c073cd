// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/mapped_memory.hpp>
#include <ddl/transport/huge_pages.hpp>
#include <ddl/transport/memory_source.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>

namespace ddl::shim {

/// Memory of this process alone that moves, without a change of its addresses, into memory that peers can map once collectives
/// keep using it.
///
/// A block moves as a whole, and only in a call that uses it as a whole: until that returns nobody else may write to it, so nothing
/// is lost that is written meanwhile. It moves back when it is given back. A process made by fork gets a copy of what has moved.
class movable_memory {
public:
    static constexpr std::size_t page = memory_source::alignment;
    /// Shorter blocks are not worth pages of their own.
    static constexpr std::size_t least = std::size_t{64} << 10;
    /// In so many calls copies cost about what it takes to move: whoever ends before has not lost by it.
    static constexpr unsigned uses_before = 8;

    static movable_memory& here() {
        static movable_memory& kept = *new movable_memory;  // stays: arrays are given back while the process ends
        return kept;
    }
    /// Whether a call need look for its buffers.
    static bool is_in_use() noexcept { return count_.load(std::memory_order_acquire) != 0; }

    /// Whole pages; nullptr if there is no memory.
    void* allocate(std::size_t bytes, bool zeroed) noexcept {
        if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - 2 * page) return nullptr;
        const std::size_t padded = whole_pages(bytes) + page;
        void* const of_malloc = zeroed ? std::calloc(1, padded) : std::malloc(padded);
        if (of_malloc == nullptr) return nullptr;
        const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(of_malloc) + page - 1) / page * page;
        advise_huge_pages(reinterpret_cast<void*>(first), bytes);
        try {
            const std::lock_guard lock{mutex_};
            blocks_.insert_or_assign(first, block{bytes, of_malloc});
            count_.store(blocks_.size(), std::memory_order_release);
        } catch (const std::bad_alloc&) {
            std::free(of_malloc);
            return nullptr;
        }
        return reinterpret_cast<void*>(first);
    }

    /// How long the block is that begins at `data`; 0 if none does.
    std::size_t bytes_of(const void* data) noexcept {
        const std::lock_guard lock{mutex_};
        const auto place = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
        return place == blocks_.end() ? 0 : place->second.bytes;
    }

    /// False if `data` is not the beginning of a block.
    bool give_back(void* data) noexcept {
        block its{};
        {
            const std::lock_guard lock{mutex_};
            const auto place = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
            if (place == blocks_.end()) return false;
            its = place->second;
            blocks_.erase(place);
            count_.store(blocks_.size(), std::memory_order_release);
            moved_ -= its.lies == nullptr ? 0 : 1;
        }
        if (its.lies == nullptr) std::free(its.of_malloc);
        else (void)mapped_memory::here().give_back(data);  // see moved_block
        return true;
    }

    /// A call is to use `bytes` at `data`. If they are a block, and calls have used that often enough, it moves into memory of
    /// `source()`; it stays where that is this process's own, or has none left.
    template <class Source>
    void use(const void* data, std::size_t bytes, Source source) noexcept {
        if (bytes < least) return;
        const std::lock_guard lock{mutex_};
        const auto place = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
        if (place == blocks_.end() || bytes < place->second.bytes || place->second.uses == uses_before) return;
        if (++place->second.uses == uses_before && moved_ < most_moved) move(place->first, place->second, source());
    }

    /// Where peers can map what lies at `data`: `data` itself if it has not moved.
    std::byte* place_of(const void* data) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(data);
        const std::lock_guard lock{mutex_};
        auto place = blocks_.upper_bound(at);
        const bool inside =
            place != blocks_.begin() && at < (--place)->first + place->second.bytes && place->second.lies != nullptr;
        return inside ? place->second.lies + (at - place->first) : reinterpret_cast<std::byte*>(at);
    }

private:
    /// Each takes two of the mappings of which a process has 65530.
    static constexpr std::size_t most_moved = std::size_t{1} << 13;

    struct block {
        std::size_t bytes;
        void* of_malloc;
        std::byte* lies = nullptr;  // once it has moved
        unsigned uses = 0;          // at most `uses_before`
    };

    /// Gives a block back that has moved: to the system's allocator, the pages behind its addresses its own again.
    struct moved_block {
        memory_source source;
        std::byte* lies;
        void* of_malloc;
        bool mapped = false;

        std::byte* allocate(std::size_t bytes) const { return source.allocate(bytes); }
        void deallocate(std::byte* data, std::size_t bytes) const noexcept {
            if (mapped && !make_private(data, bytes))
                return;  // what peers can map must not come to somebody else by malloc, nor may both have its pages
            source.deallocate(lies, bytes);
            if (mapped) std::free(of_malloc);
        }
    };

    /// Both may be locked at once by a thread that uses a block: this first, so in a fork, too.
    movable_memory() {
        (void)mapped_memory::here();
        constexpr auto lock = [] { here().mutex_.lock(); };
        constexpr auto unlock = [] { here().mutex_.unlock(); };
        (void)::pthread_atfork(lock, unlock, unlock);
    }

    static constexpr std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + page - 1) / page * page; }

    /// Puts new pages of this process's own, of zeros, in the place of what is there, if anything is.
    static bool make_private(void* data, std::size_t bytes) noexcept {
        constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        return ::mmap(data, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
    }

    void move(std::uintptr_t first, block& its, const memory_source& source) noexcept {
        if (source == memory_source{}) return;
        void* const data = reinterpret_cast<void*>(first);
        const std::size_t bytes = whole_pages(its.bytes);
        std::byte* lies = nullptr;
        try {
            lies = source.allocate(bytes);
            auto moved = std::make_shared<moved_block>(moved_block{source, lies, its.of_malloc});
            mapped_memory::here().add(static_cast<std::byte*>(data), bytes, memory_source{moved}, true);
            std::memcpy(lies, data, bytes);
            // of no bytes: maps the same pages once more
            moved->mapped = ::mremap(lies, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, data) == data;
            if (!moved->mapped) {  // the system may have taken the old pages away before it failed
                if (make_private(data, bytes)) std::memcpy(data, lies, bytes);
                (void)mapped_memory::here().give_back(data);
                return;
            }
        } catch (const std::exception&) {
            if (lies != nullptr) source.deallocate(lies, bytes);
            return;
        }
        its.lies = lies;
        ++moved_;
    }

    static inline std::atomic<std::size_t> count_{0};
    std::mutex mutex_;
    std::map<std::uintptr_t, block> blocks_;  // by their first byte
    std::size_t moved_ = 0;
};

}  // namespace ddl::shim
