// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/transport/memory_source.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ddl {

/// A communicator whose buffers are best allocated by it, because peers can map them.
template <class Communicator>
concept offers_memory = requires(const Communicator& world) {
    { world.allocator() } -> std::same_as<memory_source>;
};

/// Where buffers for `world` come from: its own memory if it offers some, else this process's.
template <class Communicator>
memory_source memory_for(const Communicator& world) {
    if constexpr (offers_memory<Communicator>) return world.allocator();
    else return memory_source{};
}

/// Gives standard containers memory that peers can map: `std::vector<float, ddl::shared_allocator<float>>
/// v(n, ddl::shared_allocator<float>{world})`. Each allocation takes whole pages, so it is for long containers.
template <class T>
class shared_allocator {
public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    template <class Communicator>
        requires requires(const Communicator& world) { world.rank(); }
    explicit shared_allocator(const Communicator& world) : source_{memory_for(world)} {}
    template <class Other>
    shared_allocator(const shared_allocator<Other>& other) noexcept : source_{other.source()} {}

    T* allocate(std::size_t count) {
        static_assert(alignof(T) <= memory_source::alignment,
                      "ddl: shared memory is aligned to pages, and this type asks for more");
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw error(errc::out_of_memory, "shared_allocator", -1, -1, "%zu elements of %zu bytes; use fewer", count,
                        sizeof(T));
        try {
            return reinterpret_cast<T*>(source_.allocate(count * sizeof(T)));
        } catch (const std::bad_alloc&) {
            throw error(errc::out_of_memory, "shared_allocator", -1, -1, "%zu bytes are not to be had; use less",
                        count * sizeof(T));
        }
    }
    void deallocate(T* data, std::size_t count) noexcept {
        source_.deallocate(reinterpret_cast<std::byte*>(data), count * sizeof(T));
    }

    const memory_source& source() const noexcept { return source_; }
    template <class Other>
    bool operator==(const shared_allocator<Other>& other) const noexcept {
        return source_ == other.source();
    }

private:
    memory_source source_;
};

/// `ddl::buffer<float> weights{world, n}`: `n` elements, zero at first, that collectives of `world` and of its
/// sub-communicators use where they are: nothing is copied.
///
/// Over transports that have no such memory it is ordinary memory. A contiguous range that moves and does not copy. Not
/// collective: each rank makes its own, of the length it likes. May outlive `world`.
template <class T>
class buffer {
public:
    using value_type = T;

    template <class Communicator>
    buffer(const Communicator& world, std::size_t count) : allocator_{world}, count_{count} {
        static_assert(
            std::is_trivially_copyable_v<T>,
            "ddl: an element must be trivially copyable, and nothing in it const or volatile; pass plain values, or a struct of them");
        if (count == 0) return;
        data_ = allocator_.allocate(count);
        try {
            std::uninitialized_value_construct_n(data_, count);
        } catch (...) {
            allocator_.deallocate(data_, count);
            throw;
        }
    }
    buffer(buffer&& from) noexcept
        : allocator_{from.allocator_}, data_{std::exchange(from.data_, nullptr)},
          count_{std::exchange(from.count_, 0)} {}
    buffer& operator=(buffer&& from) noexcept {
        buffer old{std::move(*this)};
        allocator_ = from.allocator_;
        data_ = std::exchange(from.data_, nullptr);
        count_ = std::exchange(from.count_, 0);
        return *this;
    }
    ~buffer() {
        if (data_ == nullptr) return;
        allocator_.deallocate(data_, count_);
    }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + count_; }
    const T* begin() const noexcept { return data_; }
    const T* end() const noexcept { return data_ + count_; }
    T& operator[](std::size_t i) noexcept { return data_[i]; }
    const T& operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    shared_allocator<T> allocator_;
    T* data_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace ddl
