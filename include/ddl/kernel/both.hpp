// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

namespace ddl::kernel {

/// Two places of which each gets every result. A loop that stores to both as it goes takes a line of either away from another
/// core once, where one that comes back for the second takes it twice: to read it, and later to write it.
template <class To>
struct both {
    To* first;
    To* second;
    constexpr both operator+(std::size_t elements) const noexcept { return {first + elements, second + elements}; }
};

template <class Places>
struct results_of;
template <class To>
struct results_of<To*> {
    using type = To;
};
template <class To>
struct results_of<both<To>> {
    using type = To;
};
/// What lies at one place, `To*`, or at `both<To>`.
template <class Places>
using result_t = typename results_of<Places>::type;

/// Stores `value` there.
template <class To>
constexpr void put(const To& value, To* to) {
    *to = To(value);  // elements that can be moved alone are elements too
}
template <class To>
constexpr void put(const To& value, both<To> to) {
    put(value, to.first);
    put(value, to.second);
}

/// The place that an operand comes from, if it is one of them.
template <class To>
constexpr const To* operand_at(To* to) noexcept {
    return to;
}
template <class To>
constexpr const To* operand_at(both<To> to) noexcept {
    return to.first;
}

/// Stores the bytes of `values` there, or the first of them.
template <class Values, class To>
[[gnu::always_inline]] inline void put_bytes(const Values& values, To* to,
                                             std::size_t bytes = sizeof(Values)) noexcept {
    std::memcpy(static_cast<void*>(to), &values, bytes);
}
template <class Values, class To>
[[gnu::always_inline]] inline void put_bytes(const Values& values, both<To> to,
                                             std::size_t bytes = sizeof(Values)) noexcept {
    put_bytes(values, to.first, bytes);
    put_bytes(values, to.second, bytes);
}

}  // namespace ddl::kernel
