// SPDX-License-Identifier: Apache-2.0
#pragma once
// A double of Thrust over the double of CUDA: policies that have a stream.

#include <cuda_runtime.h>

#define THRUST_DEVICE_SYSTEM_CUDA 1

namespace thrust {
namespace cuda {

struct policy {
    cudaStream_t stream = nullptr;
    policy on(cudaStream_t other) const { return {other}; }
};
inline cudaStream_t get_stream(const policy& how) { return how.stream; }
inline constexpr policy par{};
inline constexpr policy par_nosync{};

}  // namespace cuda

inline constexpr cuda::policy device{};

}  // namespace thrust
