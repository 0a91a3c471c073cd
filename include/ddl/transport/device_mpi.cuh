// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/device_block_alone.cuh>
#include <ddl/transport/device_messages.hpp>
#include <ddl/transport/mpi.hpp>
#include <ddl/transport/mpi_device_memory.hpp>
#include <ddl/transport/staged.cuh>

#include <algorithm>
#include <memory>
#include <optional>

namespace ddl {

/// Ranks of MPI with a GPU each. Where MPI takes device memory (`mpi_takes_device_memory`), it is handed the addresses and GPUs
/// fold what arrives; else, and for more than 32 ranks, vectors pass through the host as over `ddl::staged`.
///
/// `ddl::device_mpi gpus{wire}` uses the current device and the communicator `wire`, which outlives it. Calls wait for the
/// default stream, and fold on it; `gpus.on(stream)` gives the same communicator for calls on that one. They block. A
/// nonblocking call comes after what its stream has been given.
class device_mpi {
public:
    static constexpr const char* name = "device_mpi";

    explicit device_mpi(mpi& wire) : side_{std::make_shared<rank_side>(wire)} {
        if (!side_->takes) staged_.emplace(wire);
    }
    device_mpi(const device_mpi&) = default;
    device_mpi& operator=(const device_mpi&) = default;
    ~device_mpi() {
        if (side_.use_count() == 1) queue().drain();  // while calls, which refer to it, find it whole
    }

    int rank() const noexcept { return side_->wire.rank(); }
    int size() const noexcept { return side_->wire.size(); }
    int device() const noexcept { return side_->device; }
    /// Whether MPI is handed device memory.
    bool takes_device_memory() const noexcept { return side_->takes; }

    /// This communicator for calls that wait for what `stream` has been given, and fold there. It refers to this one.
    device_mpi on(cudaStream_t stream) const {
        device_mpi there = *this;
        there.stream_ = stream;
        if (staged_) there.staged_.emplace(staged_->on(stream));
        return there;
    }
    /// The same with the stream of an execution policy, as `thrust::cuda::par.on(stream)` is.
    template <stream_policy Policy>
    device_mpi on(Policy policy) const {
        return on(get_stream(policy));
    }

    // what the library asks of a communicator
    void begin(const call_site& where) { side_->wire.begin(where); }
    call_queue& queue() noexcept { return side_->wire.queue(); }
    void fail(errc code, const char* words) noexcept { side_->wire.fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return side_->wire.scratch(bytes, use); }

    /// For nonblocking calls: what the caller has put on the stream comes before. See `start`.
    after_moment defer() const {
        require_no_capture(stream_, call_site{name}, rank(), device());
        return {stream_, {stream_, device(), rank()}};
    }

    // what it asks of ranks that send from device memory
    mpi& wire() noexcept { return side_->wire; }
    staged<mpi>& through_host() noexcept { return *staged_; }
    int most_blocks() const noexcept { return side_->most_blocks; }

    std::byte* device_scratch(std::size_t bytes) {
        if (bytes > side_->scratch_bytes) {
            const device_scope scope{device(), rank()};
            const beside_captures aside{device(), rank()};
            side_->scratch_bytes = 0;
            check(cudaFree(std::exchange(side_->scratch, nullptr)), "cudaFree");
            check(cudaMalloc(&side_->scratch, bytes), "cudaMalloc");
            side_->scratch_bytes = bytes;
        }
        return static_cast<std::byte*>(side_->scratch);
    }
    void require_reachable(const char* which, const void* data, std::size_t bytes, const call_site& where) const {
        require_no_capture(stream_, where, rank(), device());
        require_memory_of(device(), which, data, bytes, where, rank());
    }
    void drain(const call_site&) const {
        const device_scope scope{device(), rank()};
        await_stream();
    }
    void copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
        const device_scope scope{device(), rank()};
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
        await_stream();
    }
    template <class Body>
    void fold(const Body& body, grid_shape shape, int ranks) const {
        const device_scope scope{device(), rank()};
        device_launch how;
        for (int each = 0; each < ranks; ++each) how.ranks[each] = static_cast<unsigned char>(each);
        Body argument = body;
        void* arguments[] = {&argument, &how};
        check(cudaLaunchKernel(launchable(&run_without_meetings<Body>),
                               dim3{static_cast<unsigned>(shape.blocks), static_cast<unsigned>(ranks)},
                               dim3{static_cast<unsigned>(shape.threads)}, arguments, 0, stream_),
              "cudaLaunchKernel");
        await_stream();
    }

private:
    /// This rank's side, which outlives the handles that `on` gives.
    struct rank_side {
        explicit rank_side(mpi& communicator) : wire{communicator} {
            require_devices(name);
            require_cuda(cudaGetDevice(&device), "cudaGetDevice", wire.rank(), 0);
            takes = mpi_takes_device_memory() && wire.size() <= grid_window::most_ranks;
            int processors = 0;
            require_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                         "cudaDeviceGetAttribute", wire.rank(), device);
            most_blocks = std::max(processors * device_blocks_together / wire.size(), 1);
        }
        rank_side(const rank_side&) = delete;
        rank_side& operator=(const rank_side&) = delete;
        ~rank_side() { quietly(cudaFree(scratch)); }

        mpi& wire;
        int device = 0;
        int most_blocks = 1;
        bool takes = false;
        void* scratch = nullptr;
        std::size_t scratch_bytes = 0;
    };

    void check(cudaError_t status, const char* operation) const { require_cuda(status, operation, rank(), device()); }
    void await_stream() const {
        const beside_captures aside{device(), rank()};
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }

    std::shared_ptr<rank_side> side_;
    std::optional<staged<mpi>> staged_;
    cudaStream_t stream_ = nullptr;
};

static_assert(device_message_transport<device_mpi>);

}  // namespace ddl
