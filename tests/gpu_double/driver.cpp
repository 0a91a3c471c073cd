// SPDX-License-Identifier: Apache-2.0
// What ddl asks of the driver: what an address is, and memory that goes from process to process as a file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.hpp"

using namespace cuda_double;

namespace {

constexpr std::size_t granularity = std::size_t{1} << 16;

/// The same as a call of the runtime, in the driver's words; last errors are the runtime's.
template <class Body>
CUresult driver_called(const char* name, Body body) {
    lock held;
    const cudaError_t status = admit(name, asks::no_fault);
    return status == cudaSuccess ? body() : static_cast<CUresult>(status);
}

template <class Value>
void say(void* place, Value value) {
    *static_cast<Value*>(place) = value;
}

CUmemGenericAllocationHandle keep(created_memory memory) {
    machine& all = machine::get();
    memory.id = ++all.last_id;
    all.created[memory.id] = memory;
    return memory.id;
}
void let_go(CUmemGenericAllocationHandle handle) {
    const auto known = machine::get().created.find(handle);
    if (--known->second.holders != 0) return;
    ::close(known->second.file);
    machine::get().created.erase(known);
}

}  // namespace

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* asked, void** answers, CUdeviceptr place) {
    return driver_called("cuPointerGetAttributes", [&] {
        machine& all = machine::get();
        const allocation* const known = all.find(reinterpret_cast<const void*>(place));
        const bool is_host = known == nullptr || known->type == cudaMemoryTypeHost;
        const bool is_managed = known != nullptr && known->type == cudaMemoryTypeManaged;
        for (unsigned i = 0; i < count; ++i) switch (asked[i]) {
                case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
                    say(answers[i], known == nullptr ? 0 : is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
                    break;
                case CU_POINTER_ATTRIBUTE_IS_MANAGED: say<int>(answers[i], is_managed); break;
                case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: say(answers[i], known == nullptr ? -2 : known->device); break;
                case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
                    say<int>(answers[i], !is_host && !is_managed && known->pool == nullptr && known->created == 0);
                    break;
                case CU_POINTER_ATTRIBUTE_BUFFER_ID:
                case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
                    say(answers[i], known == nullptr ? 0ULL : known->created != 0 ? known->created : known->id);
                    break;
                case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
                    say(answers[i], known == nullptr || known->created == 0
                                        ? 0ULL
                                        : static_cast<unsigned long long>(all.created.at(known->created).types));
                    break;
                case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
                    say(answers[i], known == nullptr ? nullptr : known->pool);
                    break;
            }
        return CUDA_SUCCESS;
    });
}
CUresult cuMemGetAddressRange(CUdeviceptr* first, std::size_t* bytes, CUdeviceptr place) {
    return driver_called("cuMemGetAddressRange", [&] {
        const allocation* const known = machine::get().find(reinterpret_cast<const void*>(place));
        if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *first = known->first;
        *bytes = known->bytes;
        return CUDA_SUCCESS;
    });
}
CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
    return driver_called("cuMemGetAllocationGranularity", [&] {
        *bytes = granularity;
        return CUDA_SUCCESS;
    });
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes, const CUmemAllocationProp* how,
                     unsigned long long) {
    return driver_called("cuMemCreate", [&] {
        if (bytes == 0 || bytes % granularity != 0) return CUDA_ERROR_INVALID_VALUE;
        const int file = ::memfd_create("cuda_double", MFD_CLOEXEC);
        if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
        *handle = keep({file, bytes, how->location.id, how->requestedHandleTypes, 0, 1});
        return CUDA_SUCCESS;
    });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    return driver_called("cuMemRelease", [&] {
        if (!machine::get().created.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
        let_go(handle);
        return CUDA_SUCCESS;
    });
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* place) {
    return driver_called("cuMemRetainAllocationHandle", [&] {
        const allocation* const known = machine::get().find(place);
        if (known == nullptr || known->created == 0) return CUDA_ERROR_INVALID_VALUE;
        ++machine::get().created.at(known->created).holders;
        *handle = known->created;
        return CUDA_SUCCESS;
    });
}
CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long) {
    return driver_called("cuMemExportToShareableHandle", [&] {
        const auto known = machine::get().created.find(handle);
        if (known == machine::get().created.end() || (known->second.types & type) == 0) return CUDA_ERROR_INVALID_VALUE;
        say(file, ::fcntl(known->second.file, F_DUPFD_CLOEXEC, 0));
        return CUDA_SUCCESS;
    });
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* file,
                                        CUmemAllocationHandleType type) {
    return driver_called("cuMemImportFromShareableHandle", [&] {
        const int own = ::fcntl(static_cast<int>(reinterpret_cast<std::uintptr_t>(file)), F_DUPFD_CLOEXEC, 0);
        struct stat about {};
        if (own < 0 || ::fstat(own, &about) != 0) return CUDA_ERROR_INVALID_VALUE;
        *handle = keep({own, static_cast<std::size_t>(about.st_size), current(), type, 0, 1});
        return CUDA_SUCCESS;
    });
}
CUresult cuMemAddressReserve(CUdeviceptr* place, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
    return driver_called("cuMemAddressReserve", [&] {
        if (bytes == 0 || bytes % granularity != 0) return CUDA_ERROR_INVALID_VALUE;
        *place = reinterpret_cast<std::uintptr_t>(
            ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        return CUDA_SUCCESS;
    });
}
CUresult cuMemAddressFree(CUdeviceptr place, std::size_t bytes) {
    return driver_called("cuMemAddressFree", [&] {
        if (machine::get().memory.contains(place)) return CUDA_ERROR_INVALID_VALUE;  // it is mapped still
        ::munmap(reinterpret_cast<void*>(place), bytes);
        return CUDA_SUCCESS;
    });
}
CUresult cuMemMap(CUdeviceptr place, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
    return driver_called("cuMemMap", [&] {
        machine& all = machine::get();
        const auto known = all.created.find(handle);
        if (known == all.created.end() || offset != 0 || bytes > known->second.bytes || all.memory.contains(place))
            return CUDA_ERROR_INVALID_VALUE;
        ::mmap(reinterpret_cast<void*>(place), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, known->second.file, 0);
        ++known->second.holders;
        all.memory[place] = {.first = place,
                             .bytes = bytes,
                             .type = cudaMemoryTypeDevice,
                             .device = known->second.device,
                             .id = ++all.last_id,
                             .created = handle};
        return CUDA_SUCCESS;
    });
}
CUresult cuMemUnmap(CUdeviceptr place, std::size_t bytes) {
    return driver_called("cuMemUnmap", [&] {
        machine& all = machine::get();
        const auto known = all.memory.find(place);
        if (known == all.memory.end() || known->second.created == 0 || known->second.bytes != bytes)
            return CUDA_ERROR_INVALID_VALUE;
        let_go(known->second.created);
        all.memory.erase(known);
        ::mmap(reinterpret_cast<void*>(place), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        return CUDA_SUCCESS;
    });
}
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* who, CUdeviceptr place) {
    return driver_called("cuMemGetAccess", [&] {
        const allocation* const known = machine::get().find(reinterpret_cast<const void*>(place));
        if (known == nullptr || known->created == 0) return CUDA_ERROR_INVALID_VALUE;
        *flags = known->open_to.contains(who->id) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
        return CUDA_SUCCESS;
    });
}
CUresult cuMemSetAccess(CUdeviceptr place, std::size_t bytes, const CUmemAccessDesc* list, std::size_t count) {
    return driver_called("cuMemSetAccess", [&] {
        const auto known = machine::get().memory.find(place);
        if (known == machine::get().memory.end()) return CUDA_ERROR_INVALID_VALUE;
        for (std::size_t i = 0; i < count; ++i) known->second.open_to.insert(list[i].location.id);
        ::mprotect(reinterpret_cast<void*>(place), bytes, PROT_READ | PROT_WRITE);
        return CUDA_SUCCESS;
    });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
    const std::map<std::string, void*> known{
        {"cuPointerGetAttributes", reinterpret_cast<void*>(&cuPointerGetAttributes)},
        {"cuMemGetAddressRange", reinterpret_cast<void*>(&cuMemGetAddressRange)},
        {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(&cuMemGetAllocationGranularity)},
        {"cuMemCreate", reinterpret_cast<void*>(&cuMemCreate)},
        {"cuMemRelease", reinterpret_cast<void*>(&cuMemRelease)},
        {"cuMemRetainAllocationHandle", reinterpret_cast<void*>(&cuMemRetainAllocationHandle)},
        {"cuMemExportToShareableHandle", reinterpret_cast<void*>(&cuMemExportToShareableHandle)},
        {"cuMemImportFromShareableHandle", reinterpret_cast<void*>(&cuMemImportFromShareableHandle)},
        {"cuMemAddressReserve", reinterpret_cast<void*>(&cuMemAddressReserve)},
        {"cuMemAddressFree", reinterpret_cast<void*>(&cuMemAddressFree)},
        {"cuMemMap", reinterpret_cast<void*>(&cuMemMap)},
        {"cuMemUnmap", reinterpret_cast<void*>(&cuMemUnmap)},
        {"cuMemGetAccess", reinterpret_cast<void*>(&cuMemGetAccess)},
        {"cuMemSetAccess", reinterpret_cast<void*>(&cuMemSetAccess)},
    };
    return called("cudaGetDriverEntryPointByVersion", asks::nothing, [&](lock&) {
        const auto place = known.find(name);
        *found = place == known.end() ? nullptr : place->second;
        if (result != nullptr)
            *result = *found == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
        return cudaSuccess;
    });
}
