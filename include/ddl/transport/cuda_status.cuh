// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>

#include <cuda_runtime.h>

#if !defined(__CUDACC_RELAXED_CONSTEXPR__) && defined(__NVCC__)
#error "ddl: pass --expt-relaxed-constexpr to nvcc, as the CMake target ddl::cuda does"
#endif

namespace ddl {

/// What a program is told of a call of the CUDA runtime that failed: `operation` names the call, as in `cudaMalloc`, the text the
/// device. What does not fit is `errc::out_of_memory`, everything else `errc::system`.
inline error cuda_failure(cudaError_t status, const char* operation, int rank, int device) noexcept {
    return error(status == cudaErrorMemoryAllocation ? errc::out_of_memory : errc::system, operation, rank, -1,
                 "CUDA device %d says %s (%s)", device, cudaGetErrorName(status), cudaGetErrorString(status));
}

/// For those who cannot be told, or have another way: whether a call went well. What it says does not stay behind for whoever asks
/// next.
inline bool quietly(cudaError_t status) noexcept {
    if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
    return status == cudaSuccess;
}

/// Throws `cuda_failure` if a call of the CUDA runtime failed.
inline void require_cuda(cudaError_t status, const char* operation, int rank, int device) {
    if (status == cudaSuccess) return;
    quietly(status);
    throw cuda_failure(status, operation, rank, device);
}

/// Why there is no GPU for this program: `status` is what cudaGetDeviceCount says, versions are CUDA's numbers, as 12040 is 12.4.
/// Driver 0 is none.
inline error lack_of_devices(const char* operation, cudaError_t status, int driver, int runtime) noexcept {
    if (status == cudaErrorInsufficientDriver && driver != 0)
        return error(errc::system, operation, -1, -1,
                     "the CUDA driver serves version %d.%d, this program needs %d.%d; install a newer driver",
                     driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (status == cudaErrorInsufficientDriver)
        return error(errc::system, operation, -1, -1,
                     "there is no CUDA driver; install one for CUDA %d.%d or later, or run on a machine with a GPU",
                     runtime / 1000, runtime % 1000 / 10);
    if (status == cudaErrorNoDevice || status == cudaSuccess)
        return error(errc::system, operation, -1, -1,
                     "there is no CUDA device; run on a machine with one, or see CUDA_VISIBLE_DEVICES");
    return cuda_failure(status, "cudaGetDeviceCount", -1, 0);
}

/// How many GPUs this process may use. Throws where there is none, or a driver that cannot serve this program.
inline int require_devices(const char* operation) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (quietly(status) && count > 0) return count;
    int driver = 0;
    quietly(cudaDriverGetVersion(&driver));
    throw lack_of_devices(operation, status, driver, CUDART_VERSION);
}

/// Throws unless blocks of a kernel on `device` may wait for each other.
inline void require_cooperative_launch(int device, const char* operation, int rank) {
    int cooperative = 0;
    require_cuda(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device), "cudaDeviceGetAttribute",
                 rank, device);
    if (cooperative == 0)
        throw error(errc::system, operation, rank, -1,
                    "CUDA device %d runs no cooperative launch, so blocks that wait for each other could hang; use "
                    "ddl::staged",
                    device);
}

/// Makes a device the current one of this thread, and then the one before again. If it is current nothing is set: that would
/// replace a context of the driver's that the program has made current.
class device_scope {
public:
    device_scope(int device, int rank) {
        require_cuda(cudaGetDevice(&before_), "cudaGetDevice", rank, device);
        if (before_ == device) return;
        require_cuda(cudaSetDevice(device), "cudaSetDevice", rank, device);
        is_changed_ = true;
    }
    device_scope(const device_scope&) = delete;
    device_scope& operator=(const device_scope&) = delete;
    ~device_scope() {
        if (is_changed_) quietly(cudaSetDevice(before_));
    }

private:
    int before_ = 0;
    bool is_changed_ = false;
};

/// A kernel as a launch takes it. clang refuses the runtime's forms for C++, of CUDA 12, which say what its arguments are.
template <class... Arguments>
auto launchable(void (*kernel)(Arguments...)) noexcept {
#if defined(__clang__) && defined(__CUDA__)
    return reinterpret_cast<const void*>(kernel);
#else
    return kernel;
#endif
}

}  // namespace ddl
