// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/bfloat16.hpp>

#include <cuda_runtime.h>

#include <bit>

struct __nv_bfloat16 {
    unsigned short bits = 0;
};
struct __nv_bfloat162_raw {
    unsigned short x, y;
};
inline __nv_bfloat162_raw __float22bfloat162_rn(float2 both) {
    return {std::bit_cast<unsigned short>(ddl::bfloat16{both.x}), std::bit_cast<unsigned short>(ddl::bfloat16{both.y})};
}
