// SPDX-License-Identifier: Apache-2.0
#pragma once

#if !defined(THRUST_DEVICE_SYSTEM) && !defined(__CUDACC__)
#error "ddl: without CUDA, define THRUST_DEVICE_SYSTEM as THRUST_DEVICE_SYSTEM_CPP, or as that of OMP or TBB"
#endif
#include <thrust/execution_policy.h>

#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
#include <ddl/transport/cuda_peer.cuh>
#else
#include <ddl/transport/host_peer.cuh>
#endif

namespace ddl {

/// Ranks whose memory is that of Thrust's device system: `cuda_peer` where it is CUDA's, `host_peer` where it is the host's.
/// One program is then compiled by nvcc, and by any compiler with `-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP`.
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
using device_team = cuda_peer;
#else
using device_team = host_peer;
#endif

}  // namespace ddl
