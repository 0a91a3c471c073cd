// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/unrolled.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ddl::kernel {

/// Sixteen bytes: the most that a thread of a GPU loads or stores at once.
struct alignas(16) packet {
    std::uint32_t words[4];
};

/// Elements in a packet; 1, and no packet, for those of which no whole number fills one.
template <class Element>
inline constexpr std::size_t packet_elements =
    sizeof(packet) % sizeof(Element) == 0 ? sizeof(packet) / sizeof(Element) : 1;
template <class Element>
inline constexpr bool fills_packets = sizeof(packet) % sizeof(Element) == 0;

/// Room for values that need no default constructor. Nothing in it lives before it is assigned.
template <class Value, std::size_t Count>
union values_of {
    std::byte nothing;
    Value values[Count];
    constexpr values_of() noexcept : nothing{} {}
};

/// The elements of a packet, as its bytes.
template <class Element>
struct packet_view {
    Element values[packet_elements<Element>];
};

/// Sets `wide` to the values of a packet, as the type that they are accumulated in.
template <class Element, class Accumulator>
constexpr void widen(const packet& from, values_of<Accumulator, packet_elements<Element>>& wide) {
    const auto view = std::bit_cast<packet_view<Element>>(from);
    unrolled<packet_elements<Element>>([&](auto i) { wide.values[i] = static_cast<Accumulator>(view.values[i]); });
}

/// And back, each value rounded once.
template <class Element, class Value>
constexpr packet narrow(const values_of<Value, packet_elements<Element>>& wide) {
    values_of<packet_view<Element>, 1> view;
    unrolled<packet_elements<Element>>(
        [&](auto i) { view.values[0].values[i] = static_cast<Element>(wide.values[i]); });
    return std::bit_cast<packet>(view.values[0]);
}

}  // namespace ddl::kernel
