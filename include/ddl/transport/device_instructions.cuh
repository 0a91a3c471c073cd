// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/packet.hpp>

namespace ddl {

/// Stores a packet in one instruction, which is what __stwb is, that clang lacks: given a bit_cast, the compiler may store word by
/// word.
__device__ inline void store_packet(std::byte* to, const kernel::packet& value) {
    asm volatile("st.wb.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "r"(value.words[0]), "r"(value.words[1]), "r"(value.words[2]), "r"(value.words[3])
                 : "memory");
}

/// The time of a clock that never jumps.
__device__ inline std::uint64_t nanoseconds_now() {
    std::uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

}  // namespace ddl
