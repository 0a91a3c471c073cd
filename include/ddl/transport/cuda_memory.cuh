// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>
#include <ddl/transport/cuda_driver.cuh>
#include <ddl/transport/cuda_status.cuh>

#include <cstddef>
#include <cstdint>
#include <span>

namespace ddl {

/// Throws if a buffer is neither managed nor of CUDA device `device`, the rank's: `which` names the argument. Of no bytes the
/// address may be any.
inline void require_memory_of(int device, const char* which, const void* data, std::size_t bytes,
                              const call_site& where, int rank) {
    if (bytes == 0) return;
    cudaPointerAttributes about{};
    require_cuda(cudaPointerGetAttributes(&about, data), "cudaPointerGetAttributes", rank, device);
    if (about.type != cudaMemoryTypeManaged && (about.type != cudaMemoryTypeDevice || about.device != device))
        throw error(errc::invalid_argument, where.operation, rank, -1,
                    "%s is no memory of CUDA device %d; pass memory of the rank's device", which, device);
}

/// The allocation that device memory belongs to; no more than `buffer` if the driver does not tell, or it runs on into the next.
inline std::span<const std::byte> allocation_around(std::span<const std::byte> buffer) {
    CUdeviceptr first = 0;
    std::size_t bytes = 0;
    const auto place = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(buffer.data()));
    if (!cuda_driver::get().get_range.quietly(&first, &bytes, place) || buffer.size() > bytes - (place - first))
        return buffer;
    return {buffer.data() - (place - first), bytes};
}

/// Throws if CUDA device `other` may not reach device memory, as that of cudaMallocAsync or cuMemCreate at first: a kernel there
/// would not be refused, but end in a fault.
inline void require_opened_to(int other, const char* which, const void* data, const call_site& where, int rank) {
    const cuda_driver& driver = cuda_driver::get();
    const auto first = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
    CUmemoryPool pool = nullptr;
    int is_plain = 0;  // as that of cudaMalloc is
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                   CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void* answers[] = {&pool, &is_plain};
    driver.get_attributes(rank, other, 2U, &asked[0], &answers[0], first);
    bool reaches = true;
    if (pool != nullptr) {
        cudaMemLocation there{};
        there.type = cudaMemLocationTypeDevice;
        there.id = other;
        cudaMemAccessFlags granted = cudaMemAccessFlagsProtNone;
        require_cuda(cudaMemPoolGetAccess(&granted, pool, &there), "cudaMemPoolGetAccess", rank, other);
        reaches = granted == cudaMemAccessFlagsProtReadWrite;
    } else if (is_plain == 0) {
        CUmemLocation there{};
        there.type = CU_MEM_LOCATION_TYPE_DEVICE;
        there.id = other;
        unsigned long long granted = 0;
        // which is answered of nothing but what cuMemCreate made
        if (driver.get_access.quietly(&granted, &there, first)) reaches = granted == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    if (reaches) return;
    throw error(errc::invalid_argument, where.operation, rank, -1,
                "%s is memory that CUDA device %d may not reach; grant it by %s, or pass memory of cudaMalloc", which,
                other, pool != nullptr ? "cudaMemPoolSetAccess" : "cuMemSetAccess");
}

/// Throws if a stream is under capture: for calls in which hosts take part, who are in no graph.
inline void require_no_capture(cudaStream_t stream, const call_site& where, int rank, int device) {
    const device_scope scope{device, rank};
    cudaStreamCaptureStatus capture{};
    require_cuda(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing", rank, device);
    if (capture != cudaStreamCaptureStatusNone)
        throw error(errc::invalid_argument, where.operation, rank, -1,
                    "the stream is under capture, and a graph does without the host sides of the ranks; call outside "
                    "of the capture");
}

}  // namespace ddl
