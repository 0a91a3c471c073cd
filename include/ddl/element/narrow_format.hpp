// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace ddl {

/// A binary floating format narrower than `float`: where the bits of a magnitude (a value without its sign) lie.
///
/// Both directions are a few integer operations, one floating addition and one selection, without a branch or a table,
/// so a loop over them vectorises on any machine. The formats differ in what their largest codes mean (infinity, NaN,
/// or more numbers): that is the caller's, here each code is a number.
/// Source: the addition that aligns a subnormal is F. Giesen's, "Float to half conversion", 2012.
template <int ExponentBits, int FractionBits>
struct narrow_format {
    static constexpr int dropped = 23 - FractionBits;  // fraction bits that `float` has more
    static constexpr std::uint32_t smallest_exponent = 129u - (1u << (ExponentBits - 1));  // of a normal, in a `float`
    static constexpr std::uint32_t smallest_normal = smallest_exponent << 23;
    static constexpr std::uint32_t rebias = (smallest_exponent - 1) << 23;

    /// `first` if `condition`, else `second`, both computed: a `?:` makes g++ move the floating addition behind a
    /// branch, and then it cannot vectorise. So our callers too add and mask what is special to their format.
    static constexpr std::uint32_t chosen(bool condition, std::uint32_t first, std::uint32_t second) noexcept {
        const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
        return (first & mask) | (second & ~mask);
    }

    /// Compares magnitudes, which are below 2^31: vectors of old know signed integers alone.
    static constexpr bool above(std::uint32_t left, std::uint32_t right) noexcept {
        return static_cast<std::int32_t>(left) > static_cast<std::int32_t>(right);
    }
    static constexpr std::uint32_t lesser(std::uint32_t left, std::uint32_t right) noexcept {
        return above(left, right) ? right : left;
    }

    /// The code nearest to the `float` of these bits, of two the even one. Requires a finite magnitude, and the result
    /// to have a code: what lies above the largest one carries into the exponent, as rounding up to infinity wants.
    static constexpr std::uint32_t rounded(std::uint32_t magnitude) noexcept {
        // Below the normals all codes are one unit apart: adding the power of two whose own last place is that unit
        // makes the hardware round to it, and leaves the code in the last bits.
        constexpr std::uint32_t aligner = (smallest_exponent + static_cast<std::uint32_t>(dropped)) << 23;
        const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(aligner);
        const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - aligner;
        const std::uint32_t odd = (magnitude >> dropped) & 1u;
        const std::uint32_t normal = (magnitude - rebias + ((1u << (dropped - 1)) - 1u) + odd) >> dropped;
        return chosen(above(smallest_normal, magnitude), subnormal, normal);
    }

    /// The bits of the `float` that equals the number of this code: every one has one.
    static constexpr std::uint32_t widened(std::uint32_t code) noexcept {
        const std::uint32_t shifted = code << dropped;
        // A subnormal is read as if it were in the smallest normal binade, whose leading one is then taken away.
        const float read = std::bit_cast<float>(shifted + smallest_normal);
        const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(read - std::bit_cast<float>(smallest_normal));
        return chosen(above(1u << 23, shifted), subnormal, shifted + rebias);
    }
};

}  // namespace ddl
