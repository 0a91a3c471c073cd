// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

namespace ddl::kernel {

/// Copies `count` elements between buffers that are the same or do not overlap. Null pointers are fine for none.
template <class Element>
void copy(const Element* from, Element* to, std::size_t count) noexcept {
    if (count != 0 && from != to) std::memcpy(static_cast<void*>(to), from, count * sizeof(Element));
}

}  // namespace ddl::kernel
