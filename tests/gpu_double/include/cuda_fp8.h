// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/float8.hpp>

#include <cuda_fp16.h>

struct __nv_fp8_e4m3 {
    unsigned char bits = 0;
};
struct __nv_fp8_e5m2 {
    unsigned char bits = 0;
};
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };

inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(unsigned short both, __nv_fp8_interpretation_t as) {
    const auto value = [as](unsigned bits) {
        const auto byte = static_cast<unsigned char>(bits);
        return as == __NV_E4M3 ? static_cast<float>(std::bit_cast<ddl::float8_e4m3>(byte))
                               : static_cast<float>(std::bit_cast<ddl::float8_e5m2>(byte));
    };
    return __float22half2_rn({value(both & 0xffU), value(both >> 8U)});
}
inline unsigned short __nv_cvt_float2_to_fp8x2(float2 both, __nv_saturation_t, __nv_fp8_interpretation_t as) {
    const auto bits = [as](float value) {
        return as == __NV_E4M3 ? std::bit_cast<unsigned char>(ddl::float8_e4m3{value})
                               : std::bit_cast<unsigned char>(ddl::float8_e5m2{value});
    };
    return static_cast<unsigned short>(bits(both.x) | bits(both.y) << 8);
}
