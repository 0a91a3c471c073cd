// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/half.hpp>

#include <cuda_runtime.h>

#include <bit>

struct __half {
    unsigned short bits = 0;
    __half() = default;
    explicit __half(float value) : bits{std::bit_cast<unsigned short>(ddl::half{value})} {}
    operator float() const { return static_cast<float>(std::bit_cast<ddl::half>(bits)); }
};
struct __half2_raw {
    unsigned short x, y;
};
inline float2 __half22float2(__half2_raw both) {
    return {static_cast<float>(std::bit_cast<ddl::half>(both.x)), static_cast<float>(std::bit_cast<ddl::half>(both.y))};
}
inline __half2_raw __float22half2_rn(float2 both) {
    return {std::bit_cast<unsigned short>(ddl::half{both.x}), std::bit_cast<unsigned short>(ddl::half{both.y})};
}
