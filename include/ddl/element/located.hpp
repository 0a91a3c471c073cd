// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>

#include <cstdint>

namespace ddl {

/// A value and where it was found: the element of `minimum_location` and `maximum_location`.
///
/// What `index` counts is the caller's: a rank, a position in a global array.
template <class Type>
struct located {
    Type value;
    std::int64_t index;

    friend constexpr bool operator==(const located& left, const located& right) noexcept {
        return left.value == right.value && left.index == right.index;
    }
};

static_assert(element<located<float>>);

}  // namespace ddl
