// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stands for the header of this name: a host in place of the two instructions of a GPU.

#include <ddl/kernel/packet.hpp>
#include <ddl/transport/patience.hpp>

#include <cstring>

namespace ddl {

inline void store_packet(std::byte* to, const kernel::packet& value) { std::memcpy(to, &value, sizeof value); }

/// A thread that asks for the time waits for another, which may need this core.
inline std::uint64_t nanoseconds_now() {
    ::sched_yield();
    return static_cast<std::uint64_t>(now() * 1e9);
}

}  // namespace ddl
