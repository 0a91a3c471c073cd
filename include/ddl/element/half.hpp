// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>
#include <ddl/element/narrow_format.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace ddl {

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. It stores; arithmetic and comparisons are `float`'s.
///
/// From `float` it rounds to nearest even, overflows to infinity from 65520 on, and keeps NaN a NaN.
struct half {
    std::uint16_t bits;

    half() = default;
    constexpr explicit half(float value) noexcept : bits{narrowed(value)} {}
    constexpr operator float() const noexcept { return widened(bits); }

    static constexpr half from_bits(std::uint16_t bits) noexcept { return std::bit_cast<half>(bits); }

    static constexpr std::uint16_t greatest = 0x7c00;  // the code of infinity: those above it are NaNs
    static constexpr std::uint16_t quiet = 0x200;      // what makes a NaN quiet

    /// The bits of the value nearest to `value`, and what bits stand for, in whole words: a loop over words vectorises.
    static constexpr std::uint32_t code_of(float value) noexcept {
        const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
        const std::uint32_t magnitude = all & 0x7fffffffu;
        const std::uint32_t sign = (all >> 16) & 0x8000u;
        const std::uint32_t clamped = format::lesser(magnitude, 0x47800000u);  // 65536 is infinity's code
        const std::uint32_t payload = 0x200u | ((magnitude >> 13) & 0x3ffu);
        return sign | format::rounded(clamped) | format::chosen(format::above(magnitude, 0x7f800000u), payload, 0u);
    }
    static constexpr float value_of(std::uint32_t code) noexcept {
        const std::uint32_t magnitude = code & 0x7fffu;
        const std::uint32_t as_number = format::widened(magnitude);
        // from the top exponent to `float`'s own
        const std::uint32_t top = format::chosen(format::above(0x7c00u, magnitude), 0u, format::rebias);
        const std::uint32_t quiet_bit = format::chosen(format::above(magnitude, 0x7c00u), 0x400000u, 0u);
        return std::bit_cast<float>(((code & 0x8000u) << 16) | (as_number + top) | quiet_bit);
    }

private:
    using format = narrow_format<5, 10>;

    // Where the machine has an instruction for it a type of the compiler's is faster, even where g++ 12 does not vectorise
    // it; elsewhere it would call a function for each value. Device code has none.
#if defined(__aarch64__)
    using converted = __fp16;
#else
    using converted = compiler_half;
#endif

    static constexpr std::uint16_t narrowed(float value) noexcept {
#if ((defined(__FLT16_MANT_DIG__) && defined(__F16C__)) || defined(__aarch64__)) && !defined(__CUDA_ARCH__)
        if (!std::is_constant_evaluated()) return std::bit_cast<std::uint16_t>(static_cast<converted>(value));
#endif
        return static_cast<std::uint16_t>(code_of(value));
    }

    static constexpr float widened(std::uint16_t bits) noexcept {
#if ((defined(__FLT16_MANT_DIG__) && defined(__F16C__)) || defined(__aarch64__)) && !defined(__CUDA_ARCH__)
        if (!std::is_constant_evaluated()) return static_cast<float>(std::bit_cast<converted>(bits));
#endif
        return value_of(bits);
    }
};

static_assert(sizeof(half) == 2 && element<half> && std::is_trivially_default_constructible_v<half>);

template <>
struct accumulation<half> {
    using type = float;
};

template <>
struct naming<half> {
    static constexpr const char* name = "float16";
};

}  // namespace ddl
