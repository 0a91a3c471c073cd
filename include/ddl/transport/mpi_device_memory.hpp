// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an MPI may have and need not: these are null where it has none.
extern "C" {
[[gnu::weak]] int MPIX_Query_cuda_support();                       // Open MPI, MPICH
[[gnu::weak]] int MPIX_GPU_query_support(int kind, int* support);  // MPICH
}

namespace ddl {

/// Whether the MPI of this process takes addresses of CUDA device memory, as far as it says. After MPI_Init.
inline bool mpi_takes_device_memory() noexcept {
    constexpr int cuda = 0;  // MPIX_GPU_SUPPORT_CUDA
    int support = 0;
    if (MPIX_Query_cuda_support != nullptr) return MPIX_Query_cuda_support() == 1;
    return MPIX_GPU_query_support != nullptr && MPIX_GPU_query_support(cuda, &support) == 0 && support != 0;
}

}  // namespace ddl
