// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/forks.hpp>
#include <ddl/shim/mapped_memory.hpp>
#include <ddl/transport/huge_pages.hpp>
#include <ddl/transport/memory_source.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
/// is lost that is written meanwhile. It moves back when it is given back. A process made by fork gets a copy of what has moved,
/// which is its own.
class movable_memory {
public:
    static constexpr std::size_t page = memory_source::alignment;
    /// Shorter blocks are not worth pages of their own.
    static constexpr std::size_t least = std::size_t{64} << 10;
    /// To move takes what about so many calls save: whoever makes fewer has not lost by it.
    static constexpr unsigned uses_before = 8;

    static movable_memory& here() {
        static movable_memory& kept = *new movable_memory;  // stays: arrays are given back while the process ends
        return kept;
    }
    /// Whether a call need look for its buffers.
    static bool is_in_use() noexcept { return count_.load(std::memory_order_acquire) != 0; }

    /// Whole pages; nullptr if there is no memory. `huge`: the system is advised to take huge ones where it is long.
    void* allocate(std::size_t bytes, bool zeroed, bool huge = true) noexcept {
        if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - 2 * page) return nullptr;
        const std::size_t padded = whole_pages(bytes) + page;
        void* const of_malloc = zeroed ? std::calloc(1, padded) : std::malloc(padded);
        if (of_malloc == nullptr) return nullptr;
        const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(of_malloc) + page - 1) / page * page;
        if (huge) advise_huge_pages(reinterpret_cast<void*>(first), bytes);
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
        block its;
        {
            const std::lock_guard lock{mutex_};
            const auto place = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
            if (place == blocks_.end()) return false;
            its = place->second;
            blocks_.erase(place);
            count_.store(blocks_.size(), std::memory_order_release);
            moved_count_ -= its.moved ? 1 : 0;
        }
        if (!its.moved) std::free(its.of_malloc);
        else (void)mapped_memory::here().give_back(data);  // see moved_block
        return true;
    }

    /// A call is to use `bytes` at `data`. If they are a block, and calls have used that often enough, it moves into memory of
    /// `source()`; it stays where that is this process's own, or has none left.
    template <class Source>
    void use(const void* data, std::size_t bytes, Source source) noexcept {
        if (bytes < least) return;
        const auto first = reinterpret_cast<std::uintptr_t>(data);
        block its;
        {
            const std::lock_guard lock{mutex_};
            const auto place = blocks_.find(first);
            if (place == blocks_.end() || bytes < place->second.bytes || place->second.uses == uses_before) return;
            if (++place->second.uses < uses_before || moved_count_ >= most_moved) return;
            its = place->second;
        }
        move(first, its, source());
    }

    /// Where peers can map what lies at `data`: `data` itself if it has not moved.
    std::byte* place_of(const void* data) noexcept {
        const std::lock_guard lock{mutex_};
        const auto at = reinterpret_cast<std::uintptr_t>(data);
        const auto place = around(at);
        const bool mapped = place != blocks_.end() && place->second.lies != nullptr &&
                            place->second.forks == forks::so_far();  // a copy of the parent's is nobody's to map
        return mapped ? place->second.lies + (at - place->first) : reinterpret_cast<std::byte*>(at);
    }

private:
    /// Each takes two of the mappings of which a process has 65530.
    static constexpr std::size_t most_moved = std::size_t{1} << 13;

    /// How a block that has moved is given back: its pages to the heap, and what malloc gave to malloc.
    struct moved_block {
        memory_source source;
        void* of_malloc;
        moved_pages pages = {};

        std::byte* allocate(std::size_t bytes) const { return source.allocate(bytes); }
        void deallocate(std::byte* data, std::size_t bytes) const noexcept {
            if (pages.lies == nullptr) return;
            constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
            if (::mmap(data, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
                return;  // what peers can map must not come to somebody else by malloc, nor may both have its pages
            (void)::madvise(data, bytes, MADV_DONTNEED);  // for who watches, as in `shared_heap`
            source.deallocate(pages.lies, bytes);
            std::free(of_malloc);
        }
    };

    struct block {
        std::size_t bytes = 0;
        void* of_malloc = nullptr;
        unsigned uses = 0;          // at most `uses_before`
        unsigned forks = 0;         // how many there had been when it moved
        std::byte* lies = nullptr;  // where peers can map it, if all of it has moved
        bool moved = false;         // whether a part has
    };
    using blocks = std::map<std::uintptr_t, block>;

    /// In a fork nothing is under way here, and locks are taken in one order: these, then that of `mapped_memory`.
    movable_memory() {
        (void)mapped_memory::here();
        constexpr auto lock = [] {
            here().moving_.lock();
            here().mutex_.lock();
        };
        constexpr auto unlock = [] {
            here().mutex_.unlock();
            here().moving_.unlock();
        };
        (void)::pthread_atfork(lock, unlock, unlock);
    }

    static constexpr std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + page - 1) / page * page; }

    /// The block into which an address points, or the end.
    blocks::iterator around(std::uintptr_t at) noexcept {
        auto place = blocks_.upper_bound(at);
        const bool inside = place != blocks_.begin() && at < (--place)->first + place->second.bytes;
        return inside ? place : blocks_.end();
    }

    void move(std::uintptr_t first, const block& its, const memory_source& source) noexcept {
        if (source == memory_source{}) return;
        const std::lock_guard alone{moving_};
        try {
            auto* const data = reinterpret_cast<std::byte*>(first);
            const std::size_t bytes = whole_pages(its.bytes);
            const auto moved = std::make_shared<moved_block>(moved_block{source, its.of_malloc});
            mapped_memory::here().add(data, bytes, memory_source{moved}, true);
            try {
                moved->pages = source.adopt(data, bytes);
            } catch (const std::exception&) {}
            if (moved->pages.lies == nullptr) {
                (void)mapped_memory::here().give_back(data);
                return;
            }
            const std::lock_guard lock{mutex_};
            block& here = blocks_.find(first)->second;
            here.moved = true;
            here.forks = forks::so_far();
            here.lies = moved->pages.bytes == bytes ? moved->pages.lies : nullptr;
            ++moved_count_;
        } catch (const std::bad_alloc&) {}
    }

    static inline std::atomic<std::size_t> count_{0};
    std::mutex moving_;  // nothing else moves, and no fork comes
    std::mutex mutex_;
    blocks blocks_;  // by their first byte
    std::size_t moved_count_ = 0;
};

}  // namespace ddl::shim
