// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/transport/cuda_status.cuh>
#include <ddl/transport/patience.hpp>

#include <algorithm>
#include <span>
#include <vector>

inline void require_success(cudaError_t status, const char* operation) { ddl::require_cuda(status, operation, -1, 0); }

/// Memory of the GPU, which frees itself.
class device_memory {
public:
    explicit device_memory(std::size_t bytes) { require_success(cudaMalloc(&data_, bytes), "cudaMalloc"); }
    device_memory(device_memory&& from) noexcept : data_{std::exchange(from.data_, nullptr)} {}
    device_memory& operator=(device_memory&&) = delete;
    ~device_memory() { static_cast<void>(cudaFree(data_)); }
    template <class Type>
    Type* as() const noexcept {
        return static_cast<Type*>(data_);
    }

private:
    void* data_ = nullptr;
};

/// Memory of the host that a GPU reaches, which frees itself.
class pinned_memory {
public:
    explicit pinned_memory(std::size_t bytes) {
        require_success(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    }
    pinned_memory(const pinned_memory&) = delete;
    pinned_memory& operator=(const pinned_memory&) = delete;
    ~pinned_memory() { static_cast<void>(cudaFreeHost(data_)); }
    float* data() const noexcept { return static_cast<float*>(data_); }

private:
    void* data_ = nullptr;
};

/// A stream that does not wait for the default one.
class own_stream {
public:
    own_stream() { require_success(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
    own_stream(const own_stream&) = delete;
    own_stream& operator=(const own_stream&) = delete;
    ~own_stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
    operator cudaStream_t() const noexcept { return stream_; }
    void wait() const { require_success(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

private:
    cudaStream_t stream_ = nullptr;
};

/// Seconds that `act()` takes on the slowest rank of `host`: the median of some turns. All ranks call it.
template <class Host, class Act>
double slowest_rank(Host& host, const Act& act, int turns = 9) {
    std::vector<double> times;
    for (int turn = -1; turn < turns; ++turn) {  // the first warms up
        ddl::barrier(host);
        const double begin = ddl::now();
        act();
        double took = ddl::now() - begin;
        ddl::allreduce(host, std::span{&took, 1}, ddl::maximum{});
        if (turn >= 0) times.push_back(took);
    }
    std::nth_element(times.begin(), times.begin() + turns / 2, times.end());
    return times[static_cast<std::size_t>(turns / 2)];
}

/// Microseconds that one `enqueue()` takes when several follow each other: the median of some such rows.
template <class Enqueue>
double microseconds_each(cudaStream_t stream, int rows, int each, const Enqueue& enqueue) {
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    require_success(cudaEventCreate(&begin), "cudaEventCreate");
    require_success(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<double> times;
    for (int row = -1; row < rows; ++row) {  // the first warms up
        require_success(cudaEventRecord(begin, stream), "cudaEventRecord");
        for (int i = 0; i < each; ++i) enqueue();
        require_success(cudaEventRecord(end, stream), "cudaEventRecord");
        require_success(cudaEventSynchronize(end), "cudaEventSynchronize");
        float milliseconds = 0;
        require_success(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
        if (row >= 0) times.push_back(1e3 * static_cast<double>(milliseconds) / each);
    }
    require_success(cudaEventDestroy(begin), "cudaEventDestroy");
    require_success(cudaEventDestroy(end), "cudaEventDestroy");
    std::nth_element(times.begin(), times.begin() + rows / 2, times.end());
    return times[static_cast<std::size_t>(rows / 2)];
}

/// Ends the capture of `stream`, and says how many microseconds its graph takes.
inline double microseconds_of_captured(cudaStream_t stream, int rows) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runs = nullptr;
    require_success(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    require_success(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
    const double time =
        microseconds_each(stream, rows, 1, [&] { require_success(cudaGraphLaunch(runs, stream), "cudaGraphLaunch"); });
    require_success(cudaGraphExecDestroy(runs), "cudaGraphExecDestroy");
    require_success(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return time;
}

/// The same as `microseconds_each` for `each` of them in a graph.
template <class Enqueue>
double microseconds_in_a_graph(cudaStream_t stream, int rows, int each, const Enqueue& enqueue) {
    require_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    for (int i = 0; i < each; ++i) enqueue();
    return microseconds_of_captured(stream, rows) / each;
}
