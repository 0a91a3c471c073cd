// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/executor/call.hpp>
#include <ddl/shim/ddl.h>

#include <climits>
#include <cstddef>
#include <new>

namespace ddl::shim {

/// The op of a task whose data only moves, and of one whose caller passed that number, which is none.
inline constexpr ddl_op moves = -1;
inline constexpr ddl_op no_op_of_caller = INT_MIN;

/// What a caller asks for: the arguments of any collective, as values.
struct task {
    collective what;
    ddl_element element;
    ddl_op op;  // `moves` where data only moves
    int root;
    const void* in;
    void* out;
    std::size_t count;            // elements of the whole vector
    void* const* data = nullptr;  // of allreduce_n: its tensors
    const std::size_t* counts = nullptr;
    std::size_t tensors = 0;
    bool on_device = false;  // a buffer lies where the host cannot read it
};

/// What a call returns within the library, without words, if a peer asks to make it again in chunks.
inline constexpr ddl_status asked_again = static_cast<int>(errc::staged);

/// Where the words of a failure go: to the thread that called, or to the request.
struct listener {
    void (*tell)(void* to, ddl_status status, const char* words) noexcept;
    void* to;
    ddl_status operator()(ddl_status status, const char* words) const noexcept {
        tell(to, status, words);
        return status;
    }
};

/// Where nobody wants to hear of it.
inline constexpr listener nobody{[](void*, ddl_status, const char*) noexcept {}, nullptr};

/// Runs `body` and turns what it throws into a status: between libraries, and to C, there are no exceptions.
template <class Body>
ddl_status guarded(const listener& heard, const char* operation, Body&& body) noexcept {
    try {
        body();
        return DDL_OK;
    } catch (const error& failure) {
        if (failure.code() == errc::staged) return asked_again;
        return heard(static_cast<ddl_status>(failure.code()), failure.what());
    } catch (const std::bad_alloc&) {
        return heard(DDL_OUT_OF_MEMORY, error(errc::out_of_memory, operation, -1, -1, "no memory is left").what());
    } catch (const std::exception& failure) {
        return heard(DDL_SYSTEM, error(errc::system, operation, -1, -1, "%s", failure.what()).what());
    } catch (...) { return heard(DDL_SYSTEM, error(errc::system, operation, -1, -1, "an op threw").what()); }
}

static_assert(static_cast<int>(errc::mismatch) == DDL_MISMATCH && static_cast<int>(errc::peer_lost) == DDL_PEER_LOST &&
              static_cast<int>(errc::timeout) == DDL_TIMEOUT &&
              static_cast<int>(errc::invalid_argument) == DDL_INVALID_ARGUMENT &&
              static_cast<int>(errc::out_of_memory) == DDL_OUT_OF_MEMORY &&
              static_cast<int>(errc::system) == DDL_SYSTEM &&
              static_cast<int>(errc::broken) == DDL_BROKEN);  // a status has the number of its error

}  // namespace ddl::shim
