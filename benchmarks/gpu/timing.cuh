// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_status.cuh>

#include <algorithm>
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

/// The same for `each` of them in a graph.
template <class Enqueue>
double microseconds_in_a_graph(cudaStream_t stream, int rows, int each, const Enqueue& enqueue) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runs = nullptr;
    require_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    for (int i = 0; i < each; ++i) enqueue();
    require_success(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    require_success(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
    const double time =
        microseconds_each(stream, rows, 1, [&] { require_success(cudaGraphLaunch(runs, stream), "cudaGraphLaunch"); });
    require_success(cudaGraphExecDestroy(runs), "cudaGraphExecDestroy");
    require_success(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return time / each;
}
