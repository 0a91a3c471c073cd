// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/forks.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace ddl::shim {

/// What C holds pointers to. The numbers are such as other memory hardly holds.
enum class kind : std::uint64_t { none = 0, communicator = 0x6c64'6420'6576'6c61, plan, request };

/// What every such object begins with: its kind, as long as it is alive.
class marked {
public:
    /// For any pointer that was, or is, a handle of any kind, and for nullptr.
    static kind kind_of(const void* object) noexcept {
        if (object == nullptr || reinterpret_cast<std::uintptr_t>(object) % alignof(marked) != 0) return kind::none;
        return static_cast<const marked*>(object)->mark_.load(std::memory_order_acquire);
    }

    /// For the error of who passes what is no living object of the wanted kind: "this is ... no plan".
    static const char* instead(const void* object) noexcept {
        switch (kind_of(object)) {
            case kind::communicator: return "a communicator, and ";
            case kind::plan: return "a plan, and ";
            case kind::request: return "a request, and ";
            default: return "";
        }
    }

protected:
    std::atomic<kind> mark_{kind::none};
};

/// A handle: an object of type `Object`, whose `Object::its_kind` it knows.
///
/// Its memory is never given back, only used again, so a pointer whose object was closed is recognised; unless another of its
/// kind has taken the place since.
template <class Object>
class handle : public marked {
public:
    /// Whether `object` is one of ours. For any pointer that was, or is, a handle of any kind, and for nullptr.
    static bool alive(const Object* object) noexcept { return kind_of(object) == Object::its_kind; }

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
        static_cast<handle*>(object)->users_.store(1, std::memory_order_release);
        static_cast<handle*>(object)->mark_.store(Object::its_kind, std::memory_order_release);
    }

    /// Calls `use(object)` for each object that is alive.
    template <class Use>
    static void each_alive(Use use) {
        for (std::size_t i = 0;; ++i) {
            Object* object = nullptr;
            {
                const std::lock_guard lock{forks::held_off()};  // which `use` may want to have itself
                if (i == places().all.size()) return;
                object = &places().all[i];
            }
            if (alive(object)) use(object);
        }
    }

    /// False if it is dead already: of two threads that close it one does.
    static bool bury(Object* object) noexcept {
        kind expected = Object::its_kind;
        return static_cast<handle*>(object)->mark_.compare_exchange_strong(expected, kind::none);
    }
    /// After `bury`, once nothing is left in it.
    static void give(Object* object) noexcept {
        const std::lock_guard lock{forks::held_off()};
        places().free.push_back(object);
    }

    /// While it lives, what is in the object stays there, whoever lets go of that meanwhile.
    ///
    /// A count of users and no lock: of a thread that a fork leaves behind, a lock would stay taken in the child.
    class user {
    public:
        /// Of an object that is dead it is none.
        explicit user(const Object* object) noexcept : object_{alive(object) && enter(*object) ? object : nullptr} {}
        user(const user&) = delete;
        user& operator=(const user&) = delete;
        ~user() {
            if (object_ != nullptr) leave(const_cast<Object*>(object_));  // none of ours is const
        }
        explicit operator bool() const noexcept { return object_ != nullptr; }

    private:
        const Object* object_;
    };
    /// After `bury`, instead of `give`: the last user empties it, and gives the place.
    static void leave(Object* object) noexcept {
        if (static_cast<handle*>(object)->users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        object->empty();
        give(object);
    }

private:
    /// False if the last user has left.
    static bool enter(const handle& object) noexcept {
        unsigned users = object.users_.load(std::memory_order_relaxed);
        while (users != 0)
            if (object.users_.compare_exchange_weak(users, users + 1, std::memory_order_acquire)) return true;
        return false;
    }

    struct pool {  // whose lock is one that no fork leaves taken in the child, which frees requests, too
        std::deque<Object> all;
        std::vector<Object*> free;
    };
    static pool& places() {
        static pool& kept = *new pool;  // stays: other threads may still hold handles when the process ends
        return kept;
    }

    mutable std::atomic<unsigned> users_{0};  // and one for being alive
};

}  // namespace ddl::shim
