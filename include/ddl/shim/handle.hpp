// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/forks.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace ddl::shim {

/// What every object that C holds by a pointer begins with: whether it is alive.
///
/// Its memory is never given back, only used again, so a pointer whose object was closed is recognised; unless another of its
/// kind has taken the place since.
template <class Object>
class handle {
public:
    /// Whether `object` is one of ours. For any pointer that was, or is, a handle of this kind, and for nullptr.
    static bool alive(const Object* object) noexcept {
        return object != nullptr && reinterpret_cast<std::uintptr_t>(object) % alignof(Object) == 0 &&
               static_cast<const handle*>(object)->mark_.load(std::memory_order_acquire) == living;
    }

    /// A place for an object, which is not alive yet.
    static Object* take() {
        const std::lock_guard lock{forks::held_off()};
        Object* object = nullptr;
        if (places().free.empty()) {
            object = &places().all.emplace_back();
            places().free.reserve(places().all.size());  // so that `give` cannot fail
        } else {
            object = places().free.back();
            places().free.pop_back();
        }
        return object;
    }
    /// Once all is in it: others, who may hold its pointer from before, find it alive then.
    static void raise(Object* object) noexcept {
        static_cast<handle*>(object)->mark_.store(living, std::memory_order_release);
    }

    /// False if it is dead already: of two threads that close it one does.
    static bool bury(Object* object) noexcept {
        std::uint64_t expected = living;
        return static_cast<handle*>(object)->mark_.compare_exchange_strong(expected, 0);
    }
    /// After `bury`, once nothing is left in it.
    static void give(Object* object) noexcept {
        const std::lock_guard lock{forks::held_off()};
        places().free.push_back(object);
    }

private:
    struct pool {  // whose lock is one that no fork leaves taken in the child, which frees requests, too
        std::deque<Object> all;
        std::vector<Object*> free;
    };
    static pool& places() {
        static pool& kept = *new pool;  // stays: other threads may still hold handles when the process ends
        return kept;
    }

    static constexpr std::uint64_t living = 0x6c64'6420'6576'6c61;
    std::atomic<std::uint64_t> mark_{0};
};

}  // namespace ddl::shim
