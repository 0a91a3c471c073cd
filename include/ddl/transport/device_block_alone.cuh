// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/device_block.cuh>

namespace ddl {

/// Runs a body on a GPU whose blocks wait for nobody: who launches it orders the ranks. No cooperative launch is needed.
template <class Body>
__global__ void __launch_bounds__(longest_device_block, device_blocks_together)
    run_without_meetings(const __grid_constant__ Body body, const __grid_constant__ device_launch launch) {
    require_device_functions<Body>();
    const int rank = launch.ranks[blockIdx.y];
    without_meetings<device_block> space{device_block{rank, launch.faults + rank, launch.nanoseconds}};
    body(space);
}

}  // namespace ddl
