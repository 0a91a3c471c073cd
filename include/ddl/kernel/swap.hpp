// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/widest.hpp>

#include <algorithm>
#include <cstddef>

namespace ddl::kernel {

/// Exchanges the `count` elements at `one` and at `other`, which do not overlap. Null pointers are fine for none.
template <class Element>
void swap(Element* one, Element* other, std::size_t count) noexcept {
    typedef unsigned char line __attribute__((vector_size(64)));
    const std::size_t bytes = count * sizeof(Element);
    auto* const here = reinterpret_cast<std::byte*>(one);
    auto* const there = reinterpret_cast<std::byte*>(other);
    widest<false>([=]<vectors>() {
        std::size_t at = 0;
        for (; at + sizeof(line) <= bytes; at += sizeof(line)) {
            line ours, theirs;
            __builtin_memcpy(&ours, here + at, sizeof(line));
            __builtin_memcpy(&theirs, there + at, sizeof(line));
            __builtin_memcpy(here + at, &theirs, sizeof(line));
            __builtin_memcpy(there + at, &ours, sizeof(line));
        }
        std::swap_ranges(here + at, here + bytes, there + at);
    });
}

}  // namespace ddl::kernel
