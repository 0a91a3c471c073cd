// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_status.cuh>

#include <memory>

namespace ddl {

/// Where a stream of CUDA stood when this was made. The default stream of a thread may be another one by the same handle:
/// so a thread that carries out calls of another lets its stream `follow` what that thread had given its own.
class cuda_moment {
public:
    cuda_moment(cudaStream_t stream, int device, int rank) : device_{device}, rank_{rank} {
        const device_scope scope{device, rank};
        cudaEvent_t event = nullptr;
        require_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate", rank, device);
        event_.reset(event, [](cudaEvent_t old) { static_cast<void>(cudaEventDestroy(old)); });
        mark(stream);
    }
    /// Moves it to where `stream` stands now.
    void mark(cudaStream_t stream) const {
        const device_scope scope{device_, rank_};
        require_cuda(cudaEventRecord(event_.get(), stream), "cudaEventRecord", rank_, device_);
    }
    /// What `stream` is given from now on comes after.
    void follow(cudaStream_t stream) const {
        const device_scope scope{device_, rank_};
        require_cuda(cudaStreamWaitEvent(stream, event_.get(), 0), "cudaStreamWaitEvent", rank_, device_);
    }

    cudaEvent_t event() const noexcept { return event_.get(); }

private:
    int device_;
    int rank_;
    std::shared_ptr<CUevent_st> event_;
};

}  // namespace ddl
