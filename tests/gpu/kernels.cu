// SPDX-License-Identifier: Apache-2.0
// The kernels whose registers and vector accesses kernels.py looks at.
#include <ddl/executor/over_grid.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/transport/device_block.cuh>

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
