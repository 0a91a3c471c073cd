// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_driver.cuh>

/// Memory of `cuMemCreate`, which can go from process to process as a file, and which `device` alone may reach.
class created_memory {
public:
    created_memory(int device, std::size_t bytes,
                   CUmemAllocationHandleType shared_by = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        using create = ddl::driver_call<decltype(&cuMemCreate)>;
        using granularity = ddl::driver_call<decltype(&cuMemGetAllocationGranularity)>;
        CUmemAllocationProp how{};
        how.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        how.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        how.location.id = device;
        how.requestedHandleTypes = shared_by;
        std::size_t page = 0;
        granularity{"cuMemGetAllocationGranularity"}(-1, device, &page, &how, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        bytes_ = (bytes + page - 1) / page * page;
        const ddl::cuda_driver& driver = ddl::cuda_driver::get();
        CUmemGenericAllocationHandle handle{};
        create{"cuMemCreate"}(-1, device, &handle, bytes_, &how, 0ULL);
        driver.reserve(-1, device, &first_, bytes_, std::size_t{0}, CUdeviceptr{0}, 0ULL);
        driver.map(-1, device, first_, bytes_, std::size_t{0}, handle, 0ULL);
        driver.release(-1, device, handle);
        CUmemAccessDesc access{};
        access.location = how.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        driver.set_access(-1, device, first_, bytes_, &access, std::size_t{1});
    }
    ~created_memory() {
        ddl::cuda_driver::get().unmap.quietly(first_, bytes_);
        ddl::cuda_driver::get().free_reserved.quietly(first_, bytes_);
    }
    float* data() const { return reinterpret_cast<float*>(first_); }

private:
    CUdeviceptr first_ = 0;
    std::size_t bytes_ = 0;
};
