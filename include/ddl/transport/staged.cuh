// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/cuda_elements.cuh>
#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/cuda_status.cuh>
#include <ddl/transport/staging_shape.hpp>
#include <ddl/transport/staging_transport.hpp>
#include <ddl/transport/stream_policy.cuh>

#include <vector>

namespace ddl {

/// Ranks that hold their data in GPUs and reduce it in host memory: for transports that cannot reach a GPU.
///
/// `ddl::staged gpus{wire}` uses the current device and the communicator `wire`, which outlives it. Chunks pass through pinned
/// memory, each slot on a stream of its own, so that copies in both directions and the reduction of a chunk overlap. Calls wait
/// for the default stream, or that of `on`, before they fetch, and block. Carries allreduce and barrier.
template <communicator HostTransport>
class staged {
public:
    static constexpr const char* name = "staged";

    explicit staged(HostTransport& host, staging_shape shape = staging_shape::from_environment())
        : host_{&host}, shape_{shape} {
        if (shape.chunk_bytes < 1 || shape.streams < 1)
            throw error(errc::invalid_argument, name, rank(), -1,
                        "chunks of %zu bytes on %d streams; ask for 1 or more of both", shape.chunk_bytes,
                        shape.streams);
        require_devices(name);
        require_cuda(cudaGetDevice(&device_), "cudaGetDevice", rank(), device_);
        slots_.resize(static_cast<std::size_t>(shape.streams));
        try {
            for (slot_memory& one : slots_)
                require_cuda(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking), "cudaStreamCreate", rank(),
                             device_);
            require_cuda(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), "cudaEventCreate", rank(), device_);
        } catch (...) {
            release();
            throw;
        }
    }
    staged(const staged&) = delete;
    staged& operator=(const staged&) = delete;
    ~staged() { release(); }

    int rank() const { return host_->rank(); }
    int size() const { return host_->size(); }
    int device() const noexcept { return device_; }
    /// What later calls wait for before they fetch: all that `stream` has been given. The default stream at first.
    staged& on(cudaStream_t stream) noexcept {
        stream_ = stream;
        return *this;
    }
    /// The same with the stream of an execution policy, as `thrust::cuda::par.on(stream)` is.
    template <stream_policy Policy>
    staged& on(Policy policy) {
        return on(get_stream(policy));
    }

    void begin(const call_site& where) { host_->begin(where); }
    call_queue& queue() noexcept { return host_->queue(); }
    void fail(errc code, const char* words) noexcept { host_->fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return host_->scratch(bytes, use); }

    HostTransport& host() noexcept { return *host_; }
    std::size_t chunk_bytes() const noexcept { return shape_.chunk_bytes; }
    int slots() const noexcept { return shape_.streams; }

    std::byte* slot(int index, std::size_t bytes) {
        slot_memory& one = slots_[static_cast<std::size_t>(index)];
        if (one.bytes < bytes) {
            const device_scope scope{device_, rank()};
            require_cuda(cudaStreamSynchronize(one.stream), "cudaStreamSynchronize", rank(), device_);
            static_cast<void>(cudaFreeHost(one.data));
            one.data = nullptr;
            one.bytes = 0;
            void* data = nullptr;
            require_cuda(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "cudaHostAlloc", rank(), device_);
            one.data = static_cast<std::byte*>(data);
            one.bytes = bytes;
        }
        return one.data;
    }
    void arrive(const call_site&) {
        const device_scope scope{device_, rank()};
        require_cuda(cudaEventRecord(ready_, stream_), "cudaEventRecord", rank(), device_);
        for (slot_memory& one : slots_)
            require_cuda(cudaStreamWaitEvent(one.stream, ready_, 0), "cudaStreamWaitEvent", rank(), device_);
    }
    void fetch(int index, const std::byte* from, std::size_t bytes) {
        slot_memory& one = slots_[static_cast<std::size_t>(index)];
        copy(one.data, from, bytes, cudaMemcpyDeviceToHost, one.stream);
    }
    void store(int index, std::byte* to, std::size_t bytes) {
        slot_memory& one = slots_[static_cast<std::size_t>(index)];
        copy(to, one.data, bytes, cudaMemcpyHostToDevice, one.stream);
    }
    void await(int index) {
        const device_scope scope{device_, rank()};
        require_cuda(cudaStreamSynchronize(slots_[static_cast<std::size_t>(index)].stream), "cudaStreamSynchronize",
                     rank(), device_);
    }

private:
    struct slot_memory {
        cudaStream_t stream = nullptr;
        std::byte* data = nullptr;
        std::size_t bytes = 0;
    };

    void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
        if (bytes == 0) return;
        const device_scope scope{device_, rank()};
        require_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync", rank(), device_);
    }

    void release() noexcept {
        // whatever these say, there is nobody left to tell
        for (slot_memory& one : slots_) {
            if (one.stream != nullptr) static_cast<void>(cudaStreamDestroy(one.stream));
            if (one.data != nullptr) static_cast<void>(cudaFreeHost(one.data));
        }
        if (ready_ != nullptr) static_cast<void>(cudaEventDestroy(ready_));
    }

    HostTransport* host_;
    staging_shape shape_;
    int device_ = 0;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t ready_ = nullptr;
    std::vector<slot_memory> slots_;
};

}  // namespace ddl
