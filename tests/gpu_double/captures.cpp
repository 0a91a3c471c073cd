// SPDX-License-Identifier: Apache-2.0
// Captures, and the graphs that come of them.
#include <algorithm>
#include <numeric>

#include "machine.hpp"

namespace cuda_double {

namespace {

cudaStreamCaptureMode& mode_of_thread() {
    static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    return mode;
}

/// Whether all that streams have put into a capture comes before what its first stream stands at.
bool joined(const capture& taken) {
    std::vector<bool> before(taken.nodes.size());
    for (const std::size_t head : taken.origin->heads) before[head] = true;
    for (std::size_t i = before.size(); i-- > 0;)
        if (before[i])
            for (const std::size_t earlier : taken.nodes[i].after) before[earlier] = true;
    return std::accumulate(before.begin(), before.end(), true, std::logical_and<>{});
}

/// Runs the nodes in some order that the edges allow.
void run(const std::vector<node>& nodes, std::minstd_rand random) {
    std::vector<std::size_t> left(nodes.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    std::vector<bool> done(nodes.size());
    while (!left.empty()) {
        std::vector<std::size_t> ready;
        for (const std::size_t i : left)
            if (std::all_of(nodes[i].after.begin(), nodes[i].after.end(), [&](std::size_t each) { return done[each]; }))
                ready.push_back(i);
        const std::size_t next = ready[random() % ready.size()];
        if (nodes[next].work) nodes[next].work();
        done[next] = true;
        std::erase(left, next);
    }
}

}  // namespace

cudaError_t forbidden_by_captures() {
    const cudaStreamCaptureMode mode = mode_of_thread();
    if (mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    cudaError_t status = cudaSuccess;
    for (const auto& each : machine::get().captures) {
        const bool ours = each->owner == std::this_thread::get_id() && each->mode != cudaStreamCaptureModeRelaxed;
        const bool global = mode == cudaStreamCaptureModeGlobal && each->mode == cudaStreamCaptureModeGlobal;
        if (!ours && !global) continue;
        each->broken = true;
        status = cudaErrorStreamCaptureUnsupported;
    }
    return status;
}

}  // namespace cuda_double

using namespace cuda_double;

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    return called("cudaThreadExchangeStreamCaptureMode", asks::nothing, [&](lock&) {
        std::swap(*mode, mode_of_thread());
        return cudaSuccess;
    });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    return called("cudaStreamBeginCapture", asks::no_fault, [&](lock&) {
        CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
        if (stream->taken) return cudaErrorInvalidValue;
        machine& all = machine::get();
        stream->taken = std::make_shared<capture>(capture{++all.last_id, mode, std::this_thread::get_id(), stream});
        stream->heads.clear();
        all.captures.insert(stream->taken);
        return cudaSuccess;
    });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    return called("cudaStreamEndCapture", asks::nothing, [&](lock&) {
        *graph = nullptr;
        CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        const std::shared_ptr<capture> taken = stream->taken;
        if (!taken || taken->origin != stream) return cudaErrorStreamCaptureUnmatched;
        if (taken->mode != cudaStreamCaptureModeRelaxed && taken->owner != std::this_thread::get_id())
            return cudaErrorStreamCaptureWrongThread;
        machine& all = machine::get();
        const bool whole = joined(*taken);
        for (CUstream_st* const each : all.streams)
            if (each->taken == taken) {
                each->taken = nullptr;
                each->heads.clear();
            }
        taken->over = true;
        all.captures.erase(taken);
        if (taken->broken) return cudaErrorStreamCaptureInvalidated;
        if (!whole) return cudaErrorStreamCaptureUnjoined;
        *graph = new CUgraph_st{std::move(taken->nodes)};
        return cudaSuccess;
    });
}
namespace {

cudaError_t tell_capture(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id) {
    CUstream_st* const stream = stream_of(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->legacy)
        for (CUstream_st* const other : machine::get().streams)
            if (other->device == stream->device && other->blocking && other->taken)
                return cudaErrorStreamCaptureImplicit;
    *status = !stream->taken          ? cudaStreamCaptureStatusNone
              : stream->taken->broken ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
    if (id != nullptr && stream->taken) *id = stream->taken->id;
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return called("cudaStreamIsCapturing", asks::no_fault,
                  [&](lock&) { return tell_capture(stream, status, nullptr); });
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
    return called("cudaStreamGetCaptureInfo", asks::no_fault, [&](lock&) { return tell_capture(stream, status, id); });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* runs, cudaGraph_t graph, unsigned long long) {
    return called("cudaGraphInstantiate", asks::no_fault, [&](lock&) {
        *runs = new CUgraphExec_st{std::make_shared<const std::vector<node>>(graph->nodes), current()};
        return cudaSuccess;
    });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t runs, cudaStream_t handle) {
    return called("cudaGraphLaunch", asks::no_fault, [&](lock&) {
        CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        return enqueue(stream, [nodes = runs->nodes, random = machine::get().random] { run(*nodes, random); });
    });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t runs) {
    return called("cudaGraphExecDestroy", asks::nothing, [&](lock&) {
        delete runs;
        return cudaSuccess;
    });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return called("cudaGraphDestroy", asks::nothing, [&](lock&) {
        delete graph;
        return cudaSuccess;
    });
}
