// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace ddl {

/// bfloat16: the upper half of a `float`, with its range and 7 of its fraction bits. It stores; arithmetic and
/// comparisons are `float`'s.
///
/// From `float` it rounds to nearest even, the largest numbers to infinity, and keeps NaN a (quiet) NaN.
struct bfloat16 {
    std::uint16_t bits;

    bfloat16() = default;
    constexpr explicit bfloat16(float value) noexcept : bits{static_cast<std::uint16_t>(code_of(value))} {}
    constexpr operator float() const noexcept { return value_of(bits); }

    static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept { return std::bit_cast<bfloat16>(bits); }

    static constexpr std::uint16_t greatest = 0x7f80;  // the code of infinity: those above it are NaNs
    static constexpr std::uint16_t quiet = 0x40;       // what makes a NaN quiet

    /// The bits of the value nearest to `value`, and what bits stand for, in whole words: a loop over words vectorises.
    static constexpr std::uint32_t code_of(float value) noexcept {
        const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t odd = (all >> 16) & 1u;
        const std::uint32_t rounded = all + 0x7fffu + odd;  // would turn some NaNs into infinity, or into zero
        const std::uint32_t as_nan = all | 0x400000u;
        return (static_cast<std::int32_t>(all & 0x7fffffffu) > 0x7f800000 ? as_nan : rounded) >> 16;
    }
    static constexpr float value_of(std::uint32_t code) noexcept { return std::bit_cast<float>(code << 16); }
};

static_assert(sizeof(bfloat16) == 2 && element<bfloat16> && std::is_trivially_default_constructible_v<bfloat16>);

template <>
struct accumulation<bfloat16> {
    using type = float;
};

template <>
struct naming<bfloat16> {
    static constexpr const char* name = "bfloat16";
};

}  // namespace ddl
