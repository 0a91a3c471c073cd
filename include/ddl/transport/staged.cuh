// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/cuda_elements.cuh>
#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/cuda_memory.cuh>
#include <ddl/transport/cuda_moment.cuh>
#include <ddl/transport/staging_shape.hpp>
#include <ddl/transport/staging_transport.hpp>
#include <ddl/transport/stream_policy.cuh>

#include <memory>
#include <utility>
#include <vector>

namespace ddl {

/// Ranks that hold their data in GPUs and whose collectives go through host memory: for transports that cannot reach a GPU.
///
/// `ddl::staged gpus{wire}` uses the current device and the communicator `wire`, which outlives it. Chunks pass through pinned
/// memory, each slot on a stream of its own, so that copies in both directions and the host's collective of a chunk overlap.
/// Calls wait for the default stream before they fetch; `gpus.on(stream)` gives the same communicator for calls that wait for
/// that one. They block. A nonblocking call comes after what its stream has been given, and is done when its results are
/// stored. Carries what `wire` does.
template <communicator HostTransport>
class staged {
public:
    static constexpr const char* name = "staged";

    explicit staged(HostTransport& host, staging_shape shape = staging_shape::from_environment())
        : side_{std::make_shared<rank_side>(host, shape)} {}
    staged(const staged&) = default;
    staged& operator=(const staged&) = default;
    ~staged() {
        if (side_.use_count() == 1) queue().drain();  // while calls, which refer to it, find it whole
    }

    int rank() const { return side_->host.rank(); }
    int size() const { return side_->host.size(); }
    int device() const noexcept { return side_->device; }

    /// This communicator for calls that wait for all that `stream` has been given. It refers to this one.
    staged on(cudaStream_t stream) const noexcept { return {side_, stream}; }
    /// The same with the stream of an execution policy, as `thrust::cuda::par.on(stream)` is.
    template <stream_policy Policy>
    staged on(Policy policy) const {
        return on(get_stream(policy));
    }

    // what the library asks of a communicator
    void begin(const call_site& where) { side_->host.begin(where); }
    call_queue& queue() noexcept { return side_->host.queue(); }
    void fail(errc code, const char* words) noexcept { side_->host.fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return side_->host.scratch(bytes, use); }

    /// For nonblocking calls: what the caller has put on the stream comes before. See `start`.
    after_moment defer() const {
        require_no_capture(stream_, call_site{name}, rank(), device());
        return {stream_, {stream_, device(), rank()}};
    }

    // what it asks of one that stages
    HostTransport& host() noexcept { return side_->host; }
    std::size_t chunk_bytes(std::size_t passing) const noexcept { return side_->shape.chunk_of(passing); }
    int slot_count() const noexcept { return side_->shape.streams; }

    std::byte* slot(int index, std::size_t bytes) {
        slot_memory& one = at(index);
        if (one.bytes < bytes) {
            await(index);
            const device_scope scope{device(), rank()};
            const beside_captures aside{device(), rank()};
            one.bytes = 0;
            check(cudaFreeHost(std::exchange(one.data, nullptr)), "cudaFreeHost");
            void* data = nullptr;
            check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "cudaHostAlloc");
            one.data = static_cast<std::byte*>(data);
            one.bytes = bytes;
        }
        return one.data;
    }
    void require_reachable(const char* which, const void* data, std::size_t bytes, const call_site& where) const {
        require_no_capture(stream_, where, rank(), device());
        require_memory_of(device(), which, data, bytes, where, rank());
    }
    void arrive(int used) {
        side_->ready.mark(stream_);
        for (int index = 0; index < used; ++index) side_->ready.follow(at(index).stream);
        side_->in_turn = used > 1;
    }
    void fetch(int index, std::size_t place, const std::byte* from, std::size_t bytes) {
        // chunks that are fetched at the same time all come late
        if (side_->in_turn) side_->fetched.follow(at(index).stream);
        copy(at(index).data + place, from, bytes, cudaMemcpyDeviceToHost, at(index).stream);
        if (side_->in_turn) side_->fetched.mark(at(index).stream);
    }
    void store(int index, std::size_t place, std::byte* to, std::size_t bytes) {
        copy(to, at(index).data + place, bytes, cudaMemcpyHostToDevice, at(index).stream);
    }
    void await(int index) {
        const device_scope scope{device(), rank()};
        const beside_captures aside{device(), rank()};
        check(cudaStreamSynchronize(at(index).stream), "cudaStreamSynchronize");
    }

private:
    struct slot_memory {
        cudaStream_t stream = nullptr;
        std::byte* data = nullptr;
        std::size_t bytes = 0;
    };

    static int current_device(const HostTransport& host, const staging_shape& shape) {
        if (shape.streams < 1)
            throw error(errc::invalid_argument, name, host.rank(), -1, "%d streams; ask for 1 or more", shape.streams);
        require_devices(name);
        int device = 0;
        require_cuda(cudaGetDevice(&device), "cudaGetDevice", host.rank(), 0);
        return device;
    }

    /// This rank's side, which outlives the handles that `on` gives.
    struct rank_side {
        rank_side(HostTransport& wire, const staging_shape& how)
            : host{wire}, shape{how}, device{current_device(wire, how)}, ready{nullptr, device, wire.rank()},
              fetched{nullptr, device, wire.rank()}, all_slots(static_cast<std::size_t>(how.streams)) {
            try {
                for (slot_memory& one : all_slots)
                    require_cuda(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking), "cudaStreamCreate",
                                 wire.rank(), device);
            } catch (...) {
                release();
                throw;
            }
        }
        rank_side(const rank_side&) = delete;
        rank_side& operator=(const rank_side&) = delete;
        ~rank_side() { release(); }

        void release() noexcept {
            // whatever these say, there is nobody left to tell
            for (const slot_memory& one : all_slots) {
                if (one.stream != nullptr) {
                    quietly(cudaStreamSynchronize(one.stream));  // copies that a failed call left
                    quietly(cudaStreamDestroy(one.stream));
                }
                if (one.data != nullptr) quietly(cudaFreeHost(one.data));
            }
        }

        HostTransport& host;
        staging_shape shape;
        int device;
        cuda_moment ready;    // when the caller's stream has come to the call
        cuda_moment fetched;  // when the last chunk has
        bool in_turn = false;
        std::vector<slot_memory> all_slots;
    };

    staged(std::shared_ptr<rank_side> side, cudaStream_t stream) noexcept : side_{std::move(side)}, stream_{stream} {}

    slot_memory& at(int index) { return side_->all_slots[static_cast<std::size_t>(index)]; }
    void check(cudaError_t status, const char* operation) const { require_cuda(status, operation, rank(), device()); }
    void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
        if (bytes == 0) return;
        const device_scope scope{device(), rank()};
        check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
    }

    std::shared_ptr<rank_side> side_;
    cudaStream_t stream_ = nullptr;
};

}  // namespace ddl
