// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace ddl {

template <class Element, std::size_t Count>
constexpr Element* data_of(Element (&array)[Count]) noexcept {
    return array;
}
template <class Range>
constexpr auto data_of(Range&& range) noexcept -> decltype(range.data()) {
    return range.data();
}
/// It lies in a device: its `data()`, or its `begin()` if it has none, is a pointer class around a plain one. So are those of a
/// vector on a device, and of a range between two pointers to it.
template <class Range>
concept device_range = requires(Range& range) { requires std::is_pointer_v<decltype(range.data().get())>; } ||
                       requires(Range& range) { requires std::is_pointer_v<decltype(range.begin().get())>; };
template <device_range Range>
constexpr auto data_of(Range&& range) noexcept {
    if constexpr (requires { range.data(); }) return range.data().get();
    else return range.begin().get();
}
template <class Element, std::size_t Count>
constexpr std::size_t size_of(Element (&)[Count]) noexcept {
    return Count;
}
template <class Range>
constexpr auto size_of(Range&& range) noexcept -> decltype(static_cast<std::size_t>(range.size())) {
    return static_cast<std::size_t>(range.size());
}

/// Elements that lie side by side: a C array, or anything with `data()` and `size()`, such as `std::vector`, `std::array`,
/// `std::span` and `ddl::buffer`.
template <class Range>
concept contiguous = requires(Range&& range) {
    requires std::is_pointer_v<decltype(data_of(range))>;
    { size_of(range) } -> std::same_as<std::size_t>;
};

/// The element type of a range, `const` kept.
template <contiguous Range>
using element_of = std::remove_pointer_t<decltype(data_of(std::declval<Range&>()))>;

/// Elements that can be gone through, side by side or not.
template <class Type>
concept has_begin = requires(Type& range) {
    range.begin();
    range.end();
};

/// A single value: a number.
template <class Type>
concept lone_value = requires(const Type& value) {
    { value + value } -> std::convertible_to<Type>;
};

/// Can stand where a range could, and is none: an op. A C array that is passed by value has become a pointer to its elements, and
/// a number was meant to be a range of one.
template <class Type>
concept no_range = !contiguous<Type> && !has_begin<Type> && !lone_value<Type> &&
                   !(std::is_pointer_v<Type> && std::is_object_v<std::remove_pointer_t<Type>>);

/// A range that can be written to.
template <class Range>
concept writable = contiguous<Range> && !std::is_const_v<element_of<Range>>;

}  // namespace ddl
