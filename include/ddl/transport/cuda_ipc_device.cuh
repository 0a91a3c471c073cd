// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_driver.cuh>
#include <ddl/transport/cuda_memory.cuh>
#include <ddl/transport/cuda_moment.cuh>
#include <ddl/transport/device_block_alone.cuh>
#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/ipc_device.hpp>
#include <ddl/transport/patience.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ddl {

/// The current GPU of the thread that makes it, as `ipc_grid` asks for it.
class cuda_ipc_device {
public:
    static constexpr const char* name = "cuda_ipc";
    using stream = cudaStream_t;

    explicit cuda_ipc_device(int rank) : rank_{rank} {
        require_devices(name);
        require_cuda(cudaGetDevice(&device_), "cudaGetDevice", rank, 0);
        try {
            prepare();
        } catch (...) {
            release();
            throw;
        }
    }
    cuda_ipc_device(const cuda_ipc_device&) = delete;
    cuda_ipc_device& operator=(const cuda_ipc_device&) = delete;
    ~cuda_ipc_device() { release(); }

    int number() const noexcept { return device_; }
    std::array<std::byte, 16> identity() const noexcept { return identity_; }
    int most_blocks() const noexcept { return most_blocks_; }

    std::byte* allocate_window(std::size_t bytes) {
        const device_scope scope{device_, rank_};
        check(cudaMalloc(&window_, bytes), "cudaMalloc");
        check(cudaMemset(window_, 0, bytes), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        return static_cast<std::byte*>(window_);
    }

    exported_memory identify(const char* which, const void* data, std::size_t bytes, const call_site& where, int rank) {
        const device_scope scope{device_, rank};
        int type = 0;
        int managed = 0;
        int owner = 0;
        int has_handle = 0;
        unsigned long long id = 0;
        unsigned long long files = 0;
        void* pool = nullptr;
        CUpointer_attribute asked[] = {
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
            CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
            CU_POINTER_ATTRIBUTE_BUFFER_ID,      CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
            CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
        void* answers[] = {&type, &managed, &owner, &has_handle, &id, &files, &pool};
        const auto place = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
        const cuda_driver& driver = cuda_driver::get();
        driver.get_attributes(rank, device_, static_cast<unsigned>(std::size(asked)), &asked[0], &answers[0], place);
        const auto invalid = [&](auto... words) {
            return error(errc::invalid_argument, where.operation, rank, -1, words...);
        };
        if (managed == 0 && type != CU_MEMORYTYPE_DEVICE)
            throw invalid("%s is host memory; pass memory of CUDA device %d, or call over ddl::shared_memory", which,
                          device_);
        const char* const unshared = managed != 0 ? "managed" : pool != nullptr ? "cudaMallocAsync's" : nullptr;
        if (unshared != nullptr)
            throw invalid(
                "%s is %s memory, which processes cannot share; pass memory of cudaMalloc, or use ddl::staged", which,
                unshared);
        if (owner != device_)
            throw invalid("%s is memory of CUDA device %d, this rank's device is %d; pass memory of the rank's device",
                          which, owner, device_);
        if (has_handle == 0 && (files & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
            throw invalid(
                "%s was made by cuMemCreate for this process alone; ask there for "
                "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, or pass memory of cudaMalloc",
                which);
        CUdeviceptr first = 0;
        std::size_t length = 0;
        driver.get_range(rank, device_, &first, &length, place);
        if (bytes > length - (place - first))
            throw invalid("%s runs on into another allocation; pass memory of one allocation", which);
        exported_memory what{.first = first, .bytes = length, .id = id, .how = exported_memory::by_handle};
        if (has_handle == 0) {
            what.how = exported_memory::by_file;
            what.id = block_number(place);
        }
        return what;
    }

    void export_handle(exported_memory& what) {
        const device_scope scope{device_, rank_};
        cudaIpcMemHandle_t handle{};
        static_assert(sizeof handle <= sizeof what.handle);
        check(cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(what.first)), "cudaIpcGetMemHandle");
        std::memcpy(what.handle.data(), &handle, sizeof handle);
    }

    descriptor export_file(const exported_memory& what) {
        const device_scope scope{device_, rank_};
        const cuda_driver& driver = cuda_driver::get();
        CUmemGenericAllocationHandle handle{};
        driver.retain(rank_, device_, &handle, reinterpret_cast<void*>(what.first));
        const held_handle held{handle};
        int number = -1;
        driver.export_file(rank_, device_, static_cast<void*>(&number), handle,
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ULL);
        return descriptor{number};
    }

    std::byte* open(const exported_memory& what, const descriptor& file) {
        const device_scope scope{device_, rank_};
        if (what.how == exported_memory::by_file) return map_file(what.bytes, file);
        cudaIpcMemHandle_t handle{};
        std::memcpy(&handle, what.handle.data(), sizeof handle);
        void* here = nullptr;
        const cudaError_t status = cudaIpcOpenMemHandle(&here, handle, cudaIpcMemLazyEnablePeerAccess);
        if (!quietly(status))
            throw error(errc::system, "cudaIpcOpenMemHandle", rank_, -1,
                        "CUDA device %d cannot reach the memory of another process: %s; use ddl::staged", device_,
                        cudaGetErrorString(status));
        return static_cast<std::byte*>(here);
    }

    void close(std::byte* mapped, const exported_memory& what) noexcept {
        int before = 0;
        const bool known = quietly(cudaGetDevice(&before)) && quietly(cudaSetDevice(device_));
        if (what.how == exported_memory::by_handle) {
            quietly(cudaIpcCloseMemHandle(mapped));
        } else {
            const auto here = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(mapped));
            cuda_driver::get().unmap.quietly(here, static_cast<std::size_t>(what.bytes));
            cuda_driver::get().free_reserved.quietly(here, static_cast<std::size_t>(what.bytes));
        }
        if (known) quietly(cudaSetDevice(before));
    }

    void require_free(stream which, const call_site& where, int rank) const {
        require_no_capture(which, where, rank, device_);
    }
    cuda_moment mark(stream which) const { return {which, device_, rank_}; }
    bool has_caught_up(stream which) const {
        const device_scope scope{device_, rank_};
        const beside_captures aside{device_, rank_};
        return is_ready(cudaStreamQuery(which), "cudaStreamQuery");
    }
    bool is_idle() const {
        const device_scope scope{device_, rank_};
        const beside_captures aside{device_, rank_};
        return is_ready(cudaEventQuery(done_), "cudaEventQuery");
    }
    int missed() const noexcept {
        return static_cast<int>(std::atomic_ref{faults_[rank_]}.load(std::memory_order_relaxed)) - 1;
    }
    void give_up(int rank) noexcept {
        std::uint64_t none = 0;
        std::atomic_ref{faults_[rank_]}.compare_exchange_strong(none, static_cast<std::uint64_t>(rank) + 1);
    }

    template <class Body>
    void launch(const Body& body, grid_shape shape, const ipc_launch<stream>& how) {
        static_assert(sizeof(Body) + sizeof(device_launch) <= (CUDART_VERSION < 12010 ? 4096 : 32764),
                      "ddl: this CUDA hands a kernel 4 KiB; specialise ddl::grid_limits_of<ddl::cuda_ipc<Host>> with a "
                      "table of 2048 bytes, or take CUDA 12.1 or later");
        const device_scope scope{device_, rank_};
        check(cudaStreamWaitEvent(how.stream, done_, 0), "cudaStreamWaitEvent");
        device_launch whose;
        whose.ranks[0] = static_cast<unsigned char>(how.rank);
        whose.faults = faults_;
        whose.nanoseconds = static_cast<std::uint64_t>(std::min(how.limit.seconds, 1e9) * 1e9);
        Body argument = body;
        void* arguments[] = {&argument, &whose};
        const dim3 blocks{static_cast<unsigned>(shape.blocks)};
        const dim3 threads{static_cast<unsigned>(shape.threads)};
        if (how.together)
            check(cudaLaunchCooperativeKernel(launchable(&run_on_device<Body>), blocks, threads, arguments, 0,
                                              how.stream),
                  "cudaLaunchCooperativeKernel");
        else
            check(cudaLaunchKernel(launchable(&run_without_meetings<Body>), blocks, threads, arguments, 0, how.stream),
                  "cudaLaunchKernel");
        const cudaError_t recorded = cudaEventRecord(done_, how.stream);
        if (recorded == cudaSuccess) return;
        give_up(rank_);
        quietly(cudaStreamSynchronize(how.stream));  // nothing else says when this grid has ended
        check(recorded, "cudaEventRecord");
    }

private:
    struct held_handle {
        CUmemGenericAllocationHandle handle;
        ~held_handle() { cuda_driver::get().release.quietly(handle); }
    };

    void check(cudaError_t status, const char* operation) const { require_cuda(status, operation, rank_, device_); }

    bool is_ready(cudaError_t status, const char* operation) const {
        if (status == cudaErrorNotReady) return false;
        check(status, operation);
        return true;
    }

    void prepare() {
        require_cooperative_launch(device_, name, rank_);
        int processors = 0;
        int together = 0;
        check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device_), "cudaDeviceGetAttribute");
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&together, run_on_device<no_work>, longest_device_block, 0),
              "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        most_blocks_ = std::min(together, device_blocks_together) * processors;
        cudaDeviceProp about{};
        check(cudaGetDeviceProperties(&about, device_), "cudaGetDeviceProperties");
        static_assert(sizeof about.uuid == sizeof identity_);
        std::memcpy(identity_.data(), &about.uuid, sizeof identity_);
        check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "cudaEventCreate");
        void* word = nullptr;
        constexpr int words = grid_window::most_ranks;  // a kernel finds that of its rank
        check(cudaHostAlloc(&word, sizeof *faults_ * words, cudaHostAllocPortable | cudaHostAllocMapped),
              "cudaHostAlloc");
        faults_ = std::fill_n(static_cast<std::uint64_t*>(word), words, 0) - words;
        static_cast<void>(cuda_driver::get());
    }

    void release() noexcept {
        // whatever these say, there is nobody left to tell
        int before = 0;
        const bool known = quietly(cudaGetDevice(&before)) && quietly(cudaSetDevice(device_));
        if (window_ != nullptr) quietly(cudaFree(window_));
        if (done_ != nullptr) quietly(cudaEventDestroy(done_));
        if (faults_ != nullptr) quietly(cudaFreeHost(faults_));
        if (known) quietly(cudaSetDevice(before));
    }

    /// The number of the memory behind an address; 0 where nobody can tell, for the address may be mapped anew.
    std::uint64_t block_number(CUdeviceptr place) const {
        unsigned long long number = 0;
#if CUDART_VERSION >= 13000
        CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID};
        void* answers[] = {&number};
        // drivers may refuse it, and say nothing of what they leave there
        if (!cuda_driver::get().get_attributes.quietly(1U, &asked[0], &answers[0], place)) number = 0;
#else
        static_cast<void>(place);
#endif
        return number;
    }

    std::byte* map_file(std::size_t bytes, const descriptor& file) const {
        const cuda_driver& driver = cuda_driver::get();
        CUmemGenericAllocationHandle handle{};
        driver.import_file(rank_, device_, &handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(file.number())),
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        const held_handle held{handle};  // the mapping holds it, too
        CUdeviceptr here = 0;
        driver.reserve(rank_, device_, &here, bytes, std::size_t{0}, CUdeviceptr{0}, 0ULL);
        bool mapped = false;
        try {
            driver.map(rank_, device_, here, bytes, std::size_t{0}, handle, 0ULL);
            mapped = true;
            CUmemAccessDesc access{};
            access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            access.location.id = device_;
            access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            driver.set_access(rank_, device_, here, bytes, &access, std::size_t{1});
        } catch (...) {
            if (mapped) driver.unmap.quietly(here, bytes);
            driver.free_reserved.quietly(here, bytes);
            throw;
        }
        return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(here));
    }

    int rank_;
    int device_ = 0;
    std::array<std::byte, 16> identity_{};
    int most_blocks_ = 0;
    void* window_ = nullptr;
    cudaEvent_t done_ = nullptr;
    std::uint64_t* faults_ = nullptr;  // pinned: grids leave there whom they missed
};

static_assert(ipc_device<cuda_ipc_device>);

}  // namespace ddl
