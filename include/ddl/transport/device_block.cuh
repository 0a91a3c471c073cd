// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/cuda_elements.cuh>
#include <ddl/transport/cuda_status.cuh>
#include <ddl/transport/device_functions.cuh>
#include <ddl/transport/device_instructions.cuh>
#include <ddl/transport/execution_space.hpp>
#include <ddl/transport/grid_window.hpp>

#include <cuda/atomic>

namespace ddl {

/// The execution space of a GPU: a block of a grid. `blockIdx.x` is the block, `blockIdx.y` says of which rank of this GPU.
///
/// Who waits in vain leaves the missing rank, plus one, in `fault`, memory that the host sees.
class device_block {
public:
    __device__ device_block(int rank, std::uint64_t* fault, std::uint64_t nanoseconds)
        : rank_{rank}, fault_{fault}, nanoseconds_{nanoseconds} {}

    __device__ int rank() const { return rank_; }
    __device__ int block() const { return static_cast<int>(blockIdx.x); }
    __device__ int blocks() const { return static_cast<int>(gridDim.x); }
    __device__ std::size_t thread() const { return threadIdx.x; }
    __device__ std::size_t threads() const { return blockDim.x; }
    __device__ void barrier() const { __syncthreads(); }
    __device__ bool all(bool ours) const { return __syncthreads_and(ours) != 0; }

    __device__ std::uint64_t load_relaxed(std::uint64_t* flag) const {
        return shared_by_all{*flag}.load(cuda::memory_order_relaxed);
    }
    __device__ std::uint64_t load_acquire(std::uint64_t* flag) const {
        return shared_by_all{*flag}.load(cuda::memory_order_acquire);
    }
    __device__ void store_relaxed(std::uint64_t* flag, std::uint64_t value) const {
        shared_by_all{*flag}.store(value, cuda::memory_order_relaxed);
    }
    __device__ void store_release(std::uint64_t* flag, std::uint64_t value) const {
        shared_by_all{*flag}.store(value, cuda::memory_order_release);
    }

    template <class Ready, class Missing>
    __device__ bool wait(const Ready& ready, const Missing& missing) const {
        if (ready()) return true;
        std::uint64_t start = 0;
        for (unsigned spins = 1;; ++spins) {
            if (ready()) return true;
            if (spins % 1024 != 0) continue;
            // another block may have given up: what it waited for will not come for us either
            if (load_relaxed(fault_) != 0) return false;
            const std::uint64_t time = nanoseconds_now();
            if (start == 0) start = time;
            if (time - start <= nanoseconds_) continue;
            store_relaxed(fault_, static_cast<std::uint64_t>(missing()) + 1);
            return false;
        }
    }

    __device__ kernel::packet load(const std::byte* from) const {
        return std::bit_cast<kernel::packet>(*reinterpret_cast<const uint4*>(from));
    }
    __device__ void store(std::byte* to, const kernel::packet& value) const { store_packet(to, value); }

    /// Narrow types are converted by the GPU's own instructions: the bits are ours, save for the sign and payload of a NaN.
    template <class Element, class Accumulator>
    __device__ void widen(const kernel::packet& from,
                          kernel::values_of<Accumulator, kernel::packet_elements<Element>>& wide) const {
        if constexpr (converts<Element, Accumulator>) {
            const auto view = std::bit_cast<kernel::packet_view<pair<Element>>>(from);
            kernel::unrolled<kernel::packet_elements<pair<Element>>>([&](auto i) {
                const float2 both = unpaired(view.values[i]);
                wide.values[2 * i] = both.x;
                wide.values[2 * i + 1] = both.y;
            });
        } else {
            kernel::widen<Element>(from, wide);
        }
    }
    template <class Element, class Value>
    __device__ kernel::packet narrow(const kernel::values_of<Value, kernel::packet_elements<Element>>& wide) const {
        if constexpr (converts<Element, Value>) {
            kernel::packet_view<pair<Element>> view;
            kernel::unrolled<kernel::packet_elements<pair<Element>>>([&](auto i) {
                view.values[i] = paired<Element>(make_float2(wide.values[2 * i], wide.values[2 * i + 1]));
            });
            return std::bit_cast<kernel::packet>(view);
        } else {
            return kernel::narrow<Element>(wide);
        }
    }

private:
    using shared_by_all = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;

    template <class Element, class Value>
    static constexpr bool converts =
        std::is_same_v<Value, float> && (std::is_same_v<Element, half> || std::is_same_v<Element, bfloat16> ||
                                         std::is_same_v<Element, float8_e4m3> || std::is_same_v<Element, float8_e5m2>);

    /// Two elements side by side, as the conversions take them.
    template <class Element>
    struct pair {
        std::conditional_t<sizeof(Element) == 2, std::uint32_t, std::uint16_t> bits;
    };

    __device__ static float2 unpaired(pair<half> both) { return __half22float2(std::bit_cast<__half2_raw>(both.bits)); }
    __device__ static float2 unpaired(pair<bfloat16> both) {
        return make_float2(bfloat16::value_of(both.bits & 0xffffU), bfloat16::value_of(both.bits >> 16));
    }
    __device__ static float2 unpaired(pair<float8_e4m3> both) {
        return __half22float2(__nv_cvt_fp8x2_to_halfraw2(both.bits, __NV_E4M3));
    }
    __device__ static float2 unpaired(pair<float8_e5m2> both) {
        return __half22float2(__nv_cvt_fp8x2_to_halfraw2(both.bits, __NV_E5M2));
    }

    template <class Element>
    __device__ static pair<Element> paired(float2 both) {
        if constexpr (std::is_same_v<Element, half>)
            return {std::bit_cast<std::uint32_t>(static_cast<__half2_raw>(__float22half2_rn(both)))};
        else if constexpr (std::is_same_v<Element, bfloat16>)
            return {std::bit_cast<std::uint32_t>(static_cast<__nv_bfloat162_raw>(__float22bfloat162_rn(both)))};
        else
            return {__nv_cvt_float2_to_fp8x2(both, __NV_SATFINITE,
                                             std::is_same_v<Element, float8_e4m3> ? __NV_E4M3 : __NV_E5M2)};
    }

    int rank_;
    std::uint64_t* fault_;
    std::uint64_t nanoseconds_;
};

/// Which ranks the blocks of a launch belong to, where they leave a fault, and how long they wait.
struct device_launch {
    unsigned char ranks[grid_window::most_ranks] = {};  // of each `blockIdx.y`
    std::uint64_t* faults = nullptr;                    // of each rank
    std::uint64_t nanoseconds = 0;
};

/// Threads of the largest block, and how many such blocks share a multiprocessor: 64 registers a thread.
inline constexpr int longest_device_block = 512;
inline constexpr int device_blocks_together = 2;

/// A body that does nothing: its kernel stands for all where a GPU is asked how many blocks it runs.
struct no_work {
    __device__ void operator()(device_block&) const {}
};

/// Runs a body on a GPU: one launch for all ranks that it has.
template <class Body>
__global__ void __launch_bounds__(longest_device_block, device_blocks_together)
    run_on_device(const __grid_constant__ Body body, const __grid_constant__ device_launch launch) {
    require_device_functions<Body>();
    const int rank = launch.ranks[blockIdx.y];
    device_block space{rank, launch.faults + rank, launch.nanoseconds};
    body(space);
}

}  // namespace ddl
