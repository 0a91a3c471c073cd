// SPDX-License-Identifier: Apache-2.0
// The kernels whose registers and vector accesses kernels.py looks at.
#include <ddl/executor/over_grid.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/transport/device_block_alone.cuh>

template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_two_shot<ddl::sum, float>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_two_shot<ddl::sum, ddl::half>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_two_shot<ddl::sum, ddl::bfloat16>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_two_shot<ddl::sum, ddl::float8_e4m3>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_one_shot<ddl::sum, float>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_one_shot<ddl::sum, ddl::bfloat16>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(
    const __grid_constant__ ddl::grid_two_shot<ddl::sum, float, ddl::collective::reduce>,
    const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(
    const __grid_constant__ ddl::grid_two_shot<ddl::sum, ddl::bfloat16, ddl::collective::reduce_scatter>,
    const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(
    const __grid_constant__ ddl::grid_tensors<ddl::sum, float, ddl::grid_limits{}.table>,
    const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(
    const __grid_constant__ ddl::grid_tensors<ddl::sum, ddl::bfloat16, ddl::grid_limits{}.table>,
    const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_move<float, ddl::collective::all_gather>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_move<float, ddl::collective::broadcast>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_move<double, ddl::collective::gather>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_move<ddl::half, ddl::collective::scatter>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_exchange<float>,
                                            const __grid_constant__ ddl::device_launch);
// those of ranks that share a GPU, or pass messages
template __global__ void ddl::run_without_meetings(const __grid_constant__ ddl::grid_two_shot<ddl::sum, float>,
                                                   const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_without_meetings(
    const __grid_constant__ ddl::grid_two_shot<ddl::sum, ddl::bfloat16, ddl::collective::reduce>,
    const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_without_meetings(
    const __grid_constant__ ddl::grid_tensors<ddl::sum, float, ddl::grid_limits{}.table>,
    const __grid_constant__ ddl::device_launch);
