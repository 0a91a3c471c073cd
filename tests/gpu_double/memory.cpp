// SPDX-License-Identifier: Apache-2.0
// Memory, copies, pools, and memory of other processes.
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine.hpp"

namespace cuda_double {

namespace {

constexpr std::size_t page = 4096;
constexpr int garbage = 0xa5;  // what new memory holds

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

/// Bytes of a file of no name, mapped; with pages on both sides that nobody may touch.
void* map_guarded(int file, std::size_t bytes) {
    auto* const place = static_cast<std::byte*>(
        ::mmap(nullptr, whole_pages(bytes) + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return ::mmap(place + page, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
}
void unmap_guarded(const allocation& old) {
    ::munmap(reinterpret_cast<void*>(old.first - page), whole_pages(old.bytes) + 2 * page);
    ::close(old.file);
}

cudaError_t allocate(void** data, std::size_t bytes, cudaMemoryType type, CUmemPoolHandle_st* pool = nullptr) {
    *data = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (bytes > std::size_t{1} << 32) return cudaErrorMemoryAllocation;
    machine& all = machine::get();
    const int file = ::memfd_create("cuda_double", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(whole_pages(bytes))) != 0) return cudaErrorMemoryAllocation;
    *data = map_guarded(file, bytes);
    std::memset(*data, garbage, bytes);
    const auto first = reinterpret_cast<std::uintptr_t>(*data);
    all.memory[first] = {first, bytes, type, current(), ++all.last_id, file, pool};
    return cudaSuccess;
}

/// Frees what begins there when all work of the device has ended, as CUDA does.
cudaError_t free_after_all(lock& held, void* data, bool of_host) {
    if (data == nullptr) return cudaSuccess;
    machine& all = machine::get();
    const allocation* const known = all.find(data);
    if (known == nullptr || known->first != reinterpret_cast<std::uintptr_t>(data) || known->created != 0 ||
        known->opened || (known->type == cudaMemoryTypeHost) != of_host)
        return cudaErrorInvalidValue;
    const allocation old = *known;
    held.await(last_of_all(old.device));
    all.memory.erase(old.first);
    unmap_guarded(old);
    return cudaSuccess;
}

/// Whether a copy of that kind may touch this.
cudaError_t check_side(const void* data, std::size_t bytes, bool of_device, bool any) {
    const allocation* const known = machine::get().find(data);
    if (known != nullptr && machine::get().find(data, bytes) == nullptr) return cudaErrorInvalidValue;
    const bool is_device = known != nullptr && known->type == cudaMemoryTypeDevice;
    const bool is_managed = known != nullptr && known->type == cudaMemoryTypeManaged;
    return any || is_managed || is_device == of_device ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t copy(lock& held, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, CUstream_st* stream,
                 bool waits) {
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    const bool any = kind == cudaMemcpyDefault;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    if (const cudaError_t status = check_side(from, bytes, from_device, any); status != cudaSuccess) return status;
    if (const cudaError_t status = check_side(to, bytes, to_device, any); status != cudaSuccess) return status;
    const cudaError_t status = enqueue(stream, [=] { std::memcpy(to, from, bytes); });
    if (status != cudaSuccess || stream->taken) return status;
    const auto is_device = [](const void* data) {
        const allocation* const known = machine::get().find(data);
        return known != nullptr && known->type == cudaMemoryTypeDevice;
    };
    // for pageable memory the host waits, and in the calls that say so, save between devices
    const bool pageable = machine::get().find(to) == nullptr || machine::get().find(from) == nullptr;
    if (pageable || (waits && !(is_device(to) && is_device(from)))) {
        held.await({stream->last});
        return machine::get().devices[static_cast<std::size_t>(stream->device)].fault;
    }
    return cudaSuccess;
}

cudaError_t fill(void* to, int value, std::size_t bytes, CUstream_st* stream) {
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    if (machine::get().find(to, bytes) == nullptr) return cudaErrorInvalidValue;
    return enqueue(stream, [=] { std::memset(to, value, bytes); });
}

/// What a handle for other processes holds.
struct shared_handle {
    pid_t process;
    int file;
    std::size_t offset;
    std::size_t bytes;
    int device;
};

}  // namespace

allocation* machine::find(const void* data, std::size_t bytes) {
    const auto place = reinterpret_cast<std::uintptr_t>(data);
    auto next = memory.upper_bound(place);
    if (next == memory.begin()) return nullptr;
    allocation& last = std::prev(next)->second;
    return place - last.first < last.bytes && bytes <= last.bytes - (place - last.first) ? &last : nullptr;
}

}  // namespace cuda_double

using namespace cuda_double;

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* about, const void* data) {
    return called("cudaPointerGetAttributes", asks::no_fault, [&](lock&) {
        const allocation* const known = machine::get().find(data);
        *about = known == nullptr ? cudaPointerAttributes{cudaMemoryTypeUnregistered, -2}
                                  : cudaPointerAttributes{known->type, known->device};
        return cudaSuccess;
    });
}
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
    return called("cudaMalloc", asks::no_fault_nor_capture,
                  [&](lock&) { return allocate(data, bytes, cudaMemoryTypeDevice); });
}
cudaError_t cudaMallocManaged(void** data, std::size_t bytes, unsigned) {
    return called("cudaMallocManaged", asks::no_fault_nor_capture,
                  [&](lock&) { return allocate(data, bytes, cudaMemoryTypeManaged); });
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
    return called("cudaHostAlloc", asks::no_fault_nor_capture,
                  [&](lock&) { return allocate(data, bytes, cudaMemoryTypeHost); });
}
cudaError_t cudaFree(void* data) {
    return called("cudaFree", asks::no_fault_nor_capture,
                  [&](lock& held) { return free_after_all(held, data, false); });
}
cudaError_t cudaFreeHost(void* data) {
    return called("cudaFreeHost", asks::no_fault_nor_capture,
                  [&](lock& held) { return free_after_all(held, data, true); });
}
cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t handle) {
    return called("cudaMallocAsync", asks::no_fault, [&](lock&) {
        const CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        return allocate(data, bytes, cudaMemoryTypeDevice,
                        machine::get().devices[static_cast<std::size_t>(stream->device)].pool);
    });
}
cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t pool, cudaStream_t handle) {
    return called("cudaMallocFromPoolAsync", asks::no_fault, [&](lock&) {
        const CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr || stream->device != pool->device || pool->over) return cudaErrorInvalidValue;
        return allocate(data, bytes, cudaMemoryTypeDevice, pool);
    });
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* how) {
    return called("cudaMemPoolCreate", asks::no_fault, [&](lock&) {
        if (how->allocType != cudaMemAllocationTypePinned || how->location.type != cudaMemLocationTypeDevice)
            return cudaErrorInvalidValue;
        *pool = &machine::get().pools.emplace_back(CUmemPoolHandle_st{how->location.id, {how->location.id}});
        return cudaSuccess;
    });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return called("cudaMemPoolDestroy", asks::nothing,
                  [&](lock&) { return std::exchange(pool->over, true) ? cudaErrorInvalidValue : cudaSuccess; });
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t handle) {
    return called("cudaFreeAsync", asks::no_fault, [&](lock&) {
        CUstream_st* const stream = stream_of(handle);
        const allocation* const known = machine::get().find(data);
        if (stream == nullptr || known == nullptr || known->pool == nullptr) return cudaErrorInvalidValue;
        const allocation old = *known;
        machine::get().memory.erase(old.first);
        return enqueue(stream, [old] { unmap_guarded(old); });
    });
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    return called("cudaDeviceGetDefaultMemPool", asks::no_fault, [&](lock&) {
        *pool = machine::get().devices.at(static_cast<std::size_t>(device)).pool;
        return cudaSuccess;
    });
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* place) {
    return called("cudaMemPoolGetAccess", asks::no_fault, [&](lock&) {
        *flags = pool->open_to.contains(place->id) ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
        return cudaSuccess;
    });
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, std::size_t count) {
    return called("cudaMemPoolSetAccess", asks::no_fault, [&](lock&) {
        for (std::size_t i = 0; i < count; ++i)
            if (list[i].flags == cudaMemAccessFlagsProtReadWrite) pool->open_to.insert(list[i].location.id);
            else pool->open_to.erase(list[i].location.id);
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return called("cudaMemcpy", asks::no_fault_nor_capture,
                  [&](lock& held) { return copy(held, to, from, bytes, kind, stream_of(nullptr), true); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return called("cudaMemcpyAsync", asks::no_fault,
                  [&](lock& held) { return copy(held, to, from, bytes, kind, stream_of(stream), false); });
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
    return called("cudaMemset", asks::no_fault_nor_capture,
                  [&](lock&) { return fill(to, value, bytes, stream_of(nullptr)); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    return called("cudaMemsetAsync", asks::no_fault, [&](lock&) { return fill(to, value, bytes, stream_of(stream)); });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* data) {
    return called("cudaIpcGetMemHandle", asks::no_fault_nor_capture, [&](lock&) {
        const allocation* const known = machine::get().find(data);
        if (known == nullptr || known->type != cudaMemoryTypeDevice || known->pool != nullptr || known->created != 0)
            return cudaErrorInvalidValue;
        const shared_handle what{::getpid(), known->file, 0, known->bytes, known->device};
        static_assert(sizeof what <= sizeof *handle);
        *handle = {};
        std::memcpy(handle, &what, sizeof what);
        return cudaSuccess;
    });
}
cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t handle, unsigned) {
    return called("cudaIpcOpenMemHandle", asks::no_fault_nor_capture, [&](lock&) {
        shared_handle what{};
        std::memcpy(&what, &handle, sizeof what);
        if (what.process == ::getpid()) return cudaErrorInvalidResourceHandle;
        const std::string path = "/proc/" + std::to_string(what.process) + "/fd/" + std::to_string(what.file);
        const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (file < 0) return cudaErrorInvalidResourceHandle;
        *data = map_guarded(file, what.bytes);
        const auto first = reinterpret_cast<std::uintptr_t>(*data);
        machine& all = machine::get();
        all.memory[first] = {.first = first,
                             .bytes = what.bytes,
                             .type = cudaMemoryTypeDevice,
                             .device = current(),
                             .id = ++all.last_id,
                             .file = file,
                             .opened = true};
        return cudaSuccess;
    });
}
cudaError_t cudaIpcCloseMemHandle(void* data) {
    return called("cudaIpcCloseMemHandle", asks::no_fault_nor_capture, [&](lock& held) {
        const allocation* const known = machine::get().find(data);
        if (known == nullptr || !known->opened) return cudaErrorInvalidValue;
        const allocation old = *known;
        held.await(last_of_all(old.device));
        machine::get().memory.erase(old.first);
        unmap_guarded(old);
        return cudaSuccess;
    });
}
