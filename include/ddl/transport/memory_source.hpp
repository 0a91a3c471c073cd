// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/huge_pages.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace ddl {

/// Pages that have moved into a heap: where it has them for all ranks, and how many bytes of them.
struct moved_pages {
    std::byte* lies = nullptr;
    std::size_t bytes = 0;
};

/// Where memory comes from, as a value: a transport's `allocator()`, for those who need its memory and outlive it.
///
/// Cheap to copy. Each copy keeps the heap alive, so memory may be given back after the communicator is gone.
class memory_source {
public:
    static constexpr std::size_t alignment = 4096;

    /// This process's own memory.
    memory_source() noexcept = default;

    /// `Heap` has `allocate(bytes)` and `deallocate(data, bytes)`, and aligns to `alignment`. It may have `adopt`.
    template <class Heap>
    explicit memory_source(std::shared_ptr<Heap> heap) noexcept
        : heap_{std::move(heap)}, allocate_{[](void* from, std::size_t bytes) -> std::byte* {
              return static_cast<Heap*>(from)->allocate(bytes);
          }},
          deallocate_{[](void* from, std::byte* data, std::size_t bytes) noexcept {
              static_cast<Heap*>(from)->deallocate(data, bytes);
          }} {
        if constexpr (requires(std::byte* place) { heap->adopt(place, 0); }) {
            adopt_ = [](void* into, std::byte* place, std::size_t bytes) {
                return static_cast<Heap*>(into)->adopt(place, bytes);
            };
        }
    }

    std::byte* allocate(std::size_t bytes) const { return allocate_(heap_.get(), bytes); }
    void deallocate(std::byte* data, std::size_t bytes) const noexcept { deallocate_(heap_.get(), data, bytes); }

    /// Moves `bytes` at `place`, whole pages of this process alone, into this memory, and maps them where they were: with the same
    /// content at the same addresses. Others may read them meanwhile, nobody may write. If memory runs out the last ones stay;
    /// all do, and there is no `lies`, if the heap has no way to do it. Else `deallocate(lies, bytes)` is due, `bytes` being as
    /// here, once there are other pages at `place`.
    moved_pages adopt(std::byte* place, std::size_t bytes) const { return adopt_(heap_.get(), place, bytes); }

    /// Whether one can give back what the other allocated.
    friend bool operator==(const memory_source& a, const memory_source& b) noexcept {
        return a.heap_ == b.heap_ && a.allocate_ == b.allocate_;
    }

private:
    static std::byte* allocate_own(void*, std::size_t bytes) {
        if (bytes > PTRDIFF_MAX) throw std::bad_alloc{};  // `operator new` may round it up to none
        auto* const data = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}));
        advise_huge_pages(data, bytes);
        return data;
    }
    static void deallocate_own(void*, std::byte* data, std::size_t) noexcept {
        ::operator delete(data, std::align_val_t{alignment});
    }

    std::shared_ptr<void> heap_;
    std::byte* (*allocate_)(void*, std::size_t) = allocate_own;
    void (*deallocate_)(void*, std::byte*, std::size_t) noexcept = deallocate_own;
    moved_pages (*adopt_)(void*, std::byte*, std::size_t) = [](void*, std::byte*, std::size_t) {
        return moved_pages{};
    };
};

}  // namespace ddl
