// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// A colour of an image, and an op on it: sums that stop at white.
struct pixel {
    std::uint8_t red, green, blue;
};

struct saturating_sum {
    static constexpr bool commutative = true;
    constexpr pixel operator()(pixel a, pixel b) const {
        return {add(a.red, b.red), add(a.green, b.green), add(a.blue, b.blue)};
    }

private:
    static constexpr std::uint8_t add(int a, int b) { return static_cast<std::uint8_t>(a + b > 255 ? 255 : a + b); }
};
