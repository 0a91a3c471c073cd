// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <concepts>

namespace ddl {

/// Knows a stream of CUDA's, as the execution policies of Thrust do: `thrust::cuda::par.on(stream)`.
template <class Policy>
concept stream_policy = requires(Policy& policy) {
    { get_stream(policy) } -> std::same_as<cudaStream_t>;
};

}  // namespace ddl
