// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_status.cuh>

#include <cuda.h>

namespace ddl {

/// A function of the CUDA driver, found through the runtime, so that no program links libcuda. `Function` is `decltype(&cuX)`.
template <class Function>
class driver_call {
public:
    explicit driver_call(const char* name) : name_{name} {
        void* found = nullptr;
        cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
        const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &found, 11020, cudaEnableDefault, &result);
#else
        const cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
        require_cuda(status, "cudaGetDriverEntryPoint", -1, 0);
        if (found == nullptr)
            throw error(errc::system, "cudaGetDriverEntryPoint", -1, -1,
                        "the CUDA driver has no %s; install a newer driver", name);
        function_ = reinterpret_cast<Function>(found);
    }

    /// Throws if the call fails, with its name and the driver's.
    template <class... Arguments>
    void operator()(int rank, int device, Arguments... arguments) const {
        if (const CUresult status = function_(arguments...); status != CUDA_SUCCESS)
            throw error(status == CUDA_ERROR_OUT_OF_MEMORY ? errc::out_of_memory : errc::system, name_, rank, -1,
                        "CUDA device %d says error %d; see CUresult in cuda.h", device, static_cast<int>(status));
    }
    /// The same for those who cannot be told, or have another way: whether it went well.
    template <class... Arguments>
    bool quietly(Arguments... arguments) const noexcept {
        return function_(arguments...) == CUDA_SUCCESS;
    }

private:
    const char* name_;
    Function function_ = nullptr;
};

/// What this library asks of the driver. Threads share one.
struct cuda_driver {
    static const cuda_driver& get() {
        static const cuda_driver found;
        return found;
    }

    driver_call<decltype(&cuPointerGetAttributes)> get_attributes{"cuPointerGetAttributes"};
    driver_call<decltype(&cuMemGetAddressRange)> get_range{"cuMemGetAddressRange"};
    driver_call<decltype(&cuMemRetainAllocationHandle)> retain{"cuMemRetainAllocationHandle"};
    driver_call<decltype(&cuMemExportToShareableHandle)> export_file{"cuMemExportToShareableHandle"};
    driver_call<decltype(&cuMemImportFromShareableHandle)> import_file{"cuMemImportFromShareableHandle"};
    driver_call<decltype(&cuMemAddressReserve)> reserve{"cuMemAddressReserve"};
    driver_call<decltype(&cuMemAddressFree)> free_reserved{"cuMemAddressFree"};
    driver_call<decltype(&cuMemMap)> map{"cuMemMap"};
    driver_call<decltype(&cuMemUnmap)> unmap{"cuMemUnmap"};
    driver_call<decltype(&cuMemSetAccess)> set_access{"cuMemSetAccess"};
    driver_call<decltype(&cuMemGetAccess)> get_access{"cuMemGetAccess"};
    driver_call<decltype(&cuMemRelease)> release{"cuMemRelease"};
};

}  // namespace ddl
