// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>
#include <ddl/text.hpp>

#include <cstdint>
#include <cstdlib>
#include <unistd.h>

namespace ddl::shim {

/// Calls `leave(status)` when this process ends by `exit`, and not when one does that it has made by fork, which is no rank.
template <void (*leave)(int status)>
void at_end_of_this_process() noexcept {
    ::on_exit(
        [](int status, void* opener) {
            if (::getpid() == static_cast<int>(reinterpret_cast<std::intptr_t>(opener))) leave(status);
        },
        reinterpret_cast<void*>(static_cast<std::intptr_t>(::getpid())));
}

/// Tells the others of an end that is a failure, as it is `amid` a call: over MPI they would wait for this process, and it for them.
inline void tell_of_end(ddl_communicator* world, int status, bool amid = false) noexcept {
    if (status != 0 || amid) ddl_abort(world, text{}.append("its process ended with status %d", status).c_str());
}

}  // namespace ddl::shim
