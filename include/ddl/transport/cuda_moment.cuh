// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/cuda_status.cuh>

#include <memory>

namespace ddl {

/// While it lives, what this thread asks of events and streams breaks no capture of another thread, be that in mode Global. That
/// they are not ready stays behind for nobody who asks cudaGetLastError next; an error that the program has left there does, though
/// it may be told as cudaErrorNotReady then, for the runtime keeps the last one.
class beside_captures {
public:
    beside_captures(int device, int rank) {
        require_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode", rank, device);
    }
    beside_captures(const beside_captures&) = delete;
    beside_captures& operator=(const beside_captures&) = delete;
    ~beside_captures() {
        quietly(cudaThreadExchangeStreamCaptureMode(&mode_));
        if (!is_left_) static_cast<void>(cudaGetLastError());
    }

private:
    bool is_left_ = cudaPeekAtLastError() != cudaSuccess;        // by the program
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then that of before
};

/// A thread that carries out calls of others keeps the device of their rank: were the one before made current again, as a
/// `device_scope` does, CUDA would prepare that one, of which the process may have no need.
inline void keep_device(int device, int rank) {
    if (call_queue::is_its_thread()) require_cuda(cudaSetDevice(device), "cudaSetDevice", rank, device);
}

/// Where a stream of CUDA stood when this was made. The default stream of a thread may be another one by the same handle:
/// so a thread that carries out calls of another lets its stream `follow` what that thread had given its own.
class cuda_moment {
public:
    cuda_moment(cudaStream_t stream, int device, int rank) : device_{device}, rank_{rank} {
        const device_scope scope{device, rank};
        cudaEvent_t event = nullptr;
        require_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate", rank, device);
        event_.reset(event, [](cudaEvent_t old) noexcept { quietly(cudaEventDestroy(old)); });
        mark(stream);
    }
    /// Moves it to where `stream` stands now.
    void mark(cudaStream_t stream) const {
        const device_scope scope{device_, rank_};
        require_cuda(cudaEventRecord(event_.get(), stream), "cudaEventRecord", rank_, device_);
    }
    /// What `stream` is given from now on comes after.
    void follow(cudaStream_t stream) const {
        keep_device(device_, rank_);
        const device_scope scope{device_, rank_};
        require_cuda(cudaStreamWaitEvent(stream, event_.get(), 0), "cudaStreamWaitEvent", rank_, device_);
    }

    /// What cudaEventQuery says of it.
    cudaError_t query() const {
        const device_scope scope{device_, rank_};
        const beside_captures aside{device_, rank_};
        return cudaEventQuery(event_.get());
    }

private:
    int device_;
    int rank_;
    std::shared_ptr<CUevent_st> event_;
};

/// What `defer` gives for calls that block the thread which carries them out: what the caller had put on the stream comes before.
struct after_moment {
    cudaStream_t stream;
    cuda_moment before;
    void begin() const { before.follow(stream); }
    void end() const noexcept {}
    bool done() const noexcept { return true; }
};

}  // namespace ddl
