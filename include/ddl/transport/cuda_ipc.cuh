// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_ipc_device.cuh>
#include <ddl/transport/ipc_grid.hpp>
#include <ddl/transport/stream_policy.cuh>
#include <ddl/transport/threads.hpp>

#include <utility>

namespace ddl {

/// Ranks that are processes of one host, on a GPU each or several on one, whose grids reach each other's memory.
///
/// `ddl::cuda_ipc gpus{node}` uses the current device and the communicator `node`, a `ddl::shared_memory`, which outlives it;
/// all ranks of `node` make one. Collectives take memory of that device, of `cudaMalloc` or of `cuMemCreate` with file
/// descriptors. They run on the default stream and block; `gpus.on(stream)` gives the same communicator for calls that
/// enqueue. Buffers then belong to the call until the stream has come past it. Where ranks share a GPU all calls block.
///
/// Peers hold buffers open until they are freed, or `forget` is called on all ranks: CUDA wants that before `cudaFree`.
template <memory_transport Host>
class cuda_ipc : public ipc_grid<Host, cuda_ipc_device> {
    using grid = ipc_grid<Host, cuda_ipc_device>;

public:
    static_assert(!std::same_as<Host, threads>, "ddl: threads are ranks of one process; use ddl::cuda_peer for them");
    explicit cuda_ipc(Host& host) : grid{host, host.rank()} {}

    /// As those of `ipc_grid`, and of this type, by which limits are looked up.
    cuda_ipc on(cudaStream_t stream) const noexcept { return cuda_ipc{grid::on(stream)}; }
    template <stream_policy Policy>
    cuda_ipc on(Policy policy) const {
        return on(get_stream(policy));
    }

private:
    explicit cuda_ipc(grid&& same) noexcept : grid{std::move(same)} {}
};

}  // namespace ddl
