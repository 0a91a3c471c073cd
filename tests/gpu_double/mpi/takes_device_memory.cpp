// SPDX-License-Identifier: Apache-2.0
// Stands before MPI's function of this name: device memory of the double is the host's, so that every MPI takes it.
#include <cstdlib>

extern "C" int MPIX_Query_cuda_support() {
    const char* const words = std::getenv("CUDA_DOUBLE_MPI");
    return words != nullptr && *words == '1';
}
