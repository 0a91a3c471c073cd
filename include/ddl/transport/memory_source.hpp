// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/huge_pages.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace ddl {

/// Where memory comes from, as a value: a transport's `allocator()`, for those who need its memory and outlive it.
///
/// Cheap to copy. Each copy keeps the heap alive, so memory may be given back after the communicator is gone.
class memory_source {
public:
    static constexpr std::size_t alignment = 4096;

    /// This process's own memory.
    memory_source() noexcept = default;

    /// `Heap` has `allocate(bytes)` and `deallocate(data, bytes)`, and aligns to `alignment`.
    template <class Heap>
    explicit memory_source(std::shared_ptr<Heap> heap) noexcept
        : heap_{std::move(heap)}, allocate_{[](void* from, std::size_t bytes) -> std::byte* {
              return static_cast<Heap*>(from)->allocate(bytes);
          }},
          deallocate_{[](void* from, std::byte* data, std::size_t bytes) noexcept {
              static_cast<Heap*>(from)->deallocate(data, bytes);
          }} {}

    std::byte* allocate(std::size_t bytes) const { return allocate_(heap_.get(), bytes); }
    void deallocate(std::byte* data, std::size_t bytes) const noexcept { deallocate_(heap_.get(), data, bytes); }

    /// Whether one can give back what the other allocated.
    friend bool operator==(const memory_source& a, const memory_source& b) noexcept {
        return a.heap_ == b.heap_ && a.allocate_ == b.allocate_;
    }

private:
    static std::byte* allocate_own(void*, std::size_t bytes) {
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
};

}  // namespace ddl
