// SPDX-License-Identifier: Apache-2.0
// With DDL_WRONG, functions that a kernel folds by and that are the host's alone: nvcc refuses them. Without, it takes them.
#include <ddl/executor/over_grid.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/transport/device_block_alone.cuh>

#ifdef DDL_WRONG
#define ON_DEVICE
#else
#define ON_DEVICE __device__
#endif

struct larger {
    ON_DEVICE float operator()(float a, float b) const { return a > b ? a : b; }
};
struct halved {
    constexpr float operator()(float a, float b) const { return a + b; }
    ON_DEVICE float finish(float sum, int) const { return sum / 2; }
};
struct point {
    float x;
    float y;
    friend ON_DEVICE point operator+(point a, point b) { return {a.x + b.x, a.y + b.y}; }
};

template __global__ void ddl::run_on_device(
    const __grid_constant__ ddl::grid_two_shot<ddl::commutative_op<larger>, float>,
    const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_on_device(const __grid_constant__ ddl::grid_one_shot<halved, float>,
                                            const __grid_constant__ ddl::device_launch);
template __global__ void ddl::run_without_meetings(
    const __grid_constant__ ddl::grid_tensors<ddl::sum, point, ddl::grid_limits{}.table>,
    const __grid_constant__ ddl::device_launch);
