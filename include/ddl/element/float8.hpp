// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>
#include <ddl/element/half.hpp>
#include <ddl/element/narrow_format.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace ddl {

/// OCP 8-bit floating point E4M3FN: 4 exponent and 3 fraction bits, up to 448, no infinity, one NaN of either sign.
///
/// From `float` it rounds to nearest even and saturates: infinity too becomes 448, as with CUDA's `__NV_SATFINITE`. NaN
/// stays NaN, and keeps its sign (CUDA drops it). It stores; arithmetic and comparisons are `float`'s.
struct float8_e4m3 {
    std::uint8_t bits;

    float8_e4m3() = default;
    constexpr explicit float8_e4m3(float value) noexcept : bits{static_cast<std::uint8_t>(code_of(value))} {}
    constexpr operator float() const noexcept { return value_of(bits); }

    static constexpr float8_e4m3 from_bits(std::uint8_t bits) noexcept { return std::bit_cast<float8_e4m3>(bits); }

    static constexpr std::uint8_t greatest = 0x7e;  // the code of 448: the one above it is NaN
    static constexpr std::uint8_t quiet = 0;

    /// The bits of the value nearest to `value`, and what bits stand for, in whole words: a loop over words vectorises.
    static constexpr std::uint32_t code_of(float value) noexcept {
        const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t magnitude = all & 0x7fffffffu;
        const std::uint32_t rounded = format::rounded(format::lesser(magnitude, 0x43e00000u));  // 448
        return ((all >> 24) & 0x80u) | rounded | format::chosen(format::above(magnitude, 0x7f800000u), 0x7fu, 0u);
    }
    static constexpr float value_of(std::uint32_t code) noexcept {
        const std::uint32_t magnitude = code & 0x7fu;
        const std::uint32_t not_a_number = format::chosen(format::above(magnitude, 0x7eu), 0x7fc00000u, 0u);
        return std::bit_cast<float>(((code & 0x80u) << 24) | format::widened(magnitude) | not_a_number);
    }

private:
    using format = narrow_format<4, 3>;
};

/// OCP 8-bit floating point E5M2: the upper half of a `half`, with its range and its infinities and 2 fraction bits.
///
/// From `float` it rounds to nearest even and saturates: infinity too becomes 57344, as with CUDA's `__NV_SATFINITE`,
/// so an infinity is met only where its bits came from elsewhere. NaN stays NaN, and keeps its sign (CUDA drops it).
/// It stores; arithmetic and comparisons are `float`'s.
struct float8_e5m2 {
    std::uint8_t bits;

    float8_e5m2() = default;
    constexpr explicit float8_e5m2(float value) noexcept : bits{static_cast<std::uint8_t>(code_of(value))} {}
    constexpr operator float() const noexcept { return value_of(bits); }

    static constexpr float8_e5m2 from_bits(std::uint8_t bits) noexcept { return std::bit_cast<float8_e5m2>(bits); }

    static constexpr std::uint8_t greatest = 0x7c;  // the code of infinity: those above it are NaNs
    static constexpr std::uint8_t quiet = 0x03;     // what makes a NaN that of `code_of`

    /// The bits of the value nearest to `value`, and what bits stand for, in whole words: a loop over words vectorises.
    static constexpr std::uint32_t code_of(float value) noexcept {
        const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t magnitude = all & 0x7fffffffu;
        const std::uint32_t rounded = format::rounded(format::lesser(magnitude, 0x47600000u));  // 57344
        return ((all >> 24) & 0x80u) | rounded | format::chosen(format::above(magnitude, 0x7f800000u), 0x7fu, 0u);
    }
    static constexpr float value_of(std::uint32_t code) noexcept { return half::value_of(code << 8); }

private:
    using format = narrow_format<5, 2>;  // `half` first would round twice
};

static_assert(sizeof(float8_e4m3) == 1 && element<float8_e4m3> &&
              std::is_trivially_default_constructible_v<float8_e4m3>);
static_assert(sizeof(float8_e5m2) == 1 && element<float8_e5m2> &&
              std::is_trivially_default_constructible_v<float8_e5m2>);

template <>
struct accumulation<float8_e4m3> {
    using type = float;
};

template <>
struct accumulation<float8_e5m2> {
    using type = float;
};

template <>
struct naming<float8_e4m3> {
    static constexpr const char* name = "float8_e4m3";
};

template <>
struct naming<float8_e5m2> {
    static constexpr const char* name = "float8_e5m2";
};

}  // namespace ddl
