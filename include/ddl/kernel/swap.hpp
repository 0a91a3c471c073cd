// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/widest.hpp>

#include <algorithm>
#include <cstddef>

namespace ddl::kernel {

/// Exchanges the `Bytes` at `one` and at `other`: all loads before all stores.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void swap_block(std::byte* one, std::byte* other) noexcept {
    typedef unsigned char block __attribute__((vector_size(Bytes)));
    block ours, theirs;
    __builtin_memcpy(&ours, one, Bytes);
    __builtin_memcpy(&theirs, other, Bytes);
    __builtin_memcpy(one, &theirs, Bytes);
    __builtin_memcpy(other, &ours, Bytes);
}

/// Exchanges the `count` elements at `one` and at `other`, which do not overlap. Null pointers are fine for none.
template <class Element>
void swap(Element* one, Element* other, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(Element);
    auto* const here = reinterpret_cast<std::byte*>(one);
    auto* const there = reinterpret_cast<std::byte*>(other);
    widest<false>([=]<vectors>() {
        std::size_t at = 0;
        for (; at + 64 <= bytes; at += 64) swap_block<64>(here + at, there + at);
        std::swap_ranges(here + at, here + bytes, there + at);
    });
}

}  // namespace ddl::kernel
