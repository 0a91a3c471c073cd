// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/device_block_alone.cuh>
#include <ddl/transport/device_messages.hpp>
#include <ddl/transport/mpi.hpp>
#include <ddl/transport/mpi_device_memory.hpp>
#include <ddl/transport/staged.cuh>

#include <algorithm>
#include <optional>

namespace ddl {

/// Ranks of MPI with a GPU each. Where MPI takes device memory (`mpi_takes_device_memory`), it is handed the addresses and GPUs
/// fold what arrives; else, and for more than 32 ranks, vectors pass through the host as over `ddl::staged`.
///
/// `ddl::device_mpi gpus{wire}` uses the current device and the communicator `wire`, which outlives it. Calls wait for the
/// default stream, or that of `on`, and block. Carries allreduce and barrier.
class device_mpi {
public:
    static constexpr const char* name = "device_mpi";

    explicit device_mpi(mpi& wire) : wire_{&wire} {
        require_devices(name);
        require_cuda(cudaGetDevice(&device_), "cudaGetDevice", rank(), 0);
        takes_ = mpi_takes_device_memory() && size() <= grid_window::most_ranks;
        if (!takes_) {
            staged_.emplace(wire);
            return;
        }
        int processors = 0;
        require_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device_),
                     "cudaDeviceGetAttribute", rank(), device_);
        most_blocks_ = std::max(processors * device_blocks_together / size(), 1);
    }
    device_mpi(const device_mpi&) = delete;
    device_mpi& operator=(const device_mpi&) = delete;
    ~device_mpi() {
        queue().drain();  // the wire's, which outlives this
        static_cast<void>(cudaFree(scratch_));
    }

    int rank() const noexcept { return wire_->rank(); }
    int size() const noexcept { return wire_->size(); }
    int device() const noexcept { return device_; }
    bool takes_device_memory() const noexcept { return takes_; }
    /// Later calls wait for what `stream` has been given. The default stream at first.
    device_mpi& on(cudaStream_t stream) noexcept {
        stream_ = stream;
        if (staged_) staged_->on(stream);
        return *this;
    }

    void begin(const call_site& where) { wire_->begin(where); }
    call_queue& queue() noexcept { return wire_->queue(); }
    void fail(errc code, const char* words) noexcept { wire_->fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return wire_->scratch(bytes, use); }

    mpi& wire() noexcept { return *wire_; }
    staged<mpi>& through_host() noexcept { return *staged_; }
    int most_blocks() const noexcept { return most_blocks_; }

    std::byte* device_scratch(std::size_t bytes) {
        if (bytes > scratch_bytes_) {
            const device_scope scope{device_, rank()};
            static_cast<void>(cudaFree(std::exchange(scratch_, nullptr)));
            scratch_bytes_ = 0;
            require_cuda(cudaMalloc(&scratch_, bytes), "cudaMalloc", rank(), device_);
            scratch_bytes_ = bytes;
        }
        return static_cast<std::byte*>(scratch_);
    }
    void require_reachable(const char* which, const void* data, std::size_t bytes, const call_site& where) const {
        if (bytes == 0) return;
        cudaPointerAttributes about{};
        require_cuda(cudaPointerGetAttributes(&about, data), "cudaPointerGetAttributes", rank(), device_);
        if (about.type != cudaMemoryTypeManaged && (about.type != cudaMemoryTypeDevice || about.device != device_))
            throw error(errc::invalid_argument, where.operation, rank(), -1,
                        "%s is no memory of CUDA device %d; pass memory of the rank's device", which, device_);
    }
    void drain(const call_site&) const {
        const device_scope scope{device_, rank()};
        require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", rank(), device_);
    }
    template <class Body>
    void fold(const Body& body, grid_shape shape, int ranks) const {
        const device_scope scope{device_, rank()};
        device_launch how;
        for (int each = 0; each < ranks; ++each) how.ranks[each] = static_cast<unsigned char>(each);
        Body argument = body;
        void* arguments[] = {&argument, &how};
        // the runtime's form for C: clang refuses that for C++, of CUDA 12
        require_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(&run_without_meetings<Body>),
                                      dim3{static_cast<unsigned>(shape.blocks), static_cast<unsigned>(ranks)},
                                      dim3{static_cast<unsigned>(shape.threads)}, arguments, 0, stream_),
                     "cudaLaunchKernel", rank(), device_);
        require_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", rank(), device_);
    }

private:
    mpi* wire_;
    std::optional<staged<mpi>> staged_;
    int device_ = 0;
    int most_blocks_ = 1;
    bool takes_ = false;
    cudaStream_t stream_ = nullptr;
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
};

static_assert(device_message_transport<device_mpi>);

}  // namespace ddl
