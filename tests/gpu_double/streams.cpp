// SPDX-License-Identifier: Apache-2.0
// Streams, each with a thread of its own, and events.
#include <algorithm>
#include <chrono>

#include "machine.hpp"

namespace cuda_double {

namespace {

/// What the thread of a stream does.
void serve(CUstream_st* stream) {
    machine& all = machine::get();
    lock held;
    for (;;) {
        held.wait([&] { return !stream->waiting.empty() || stream->closing; });
        if (stream->waiting.empty()) break;
        const task_ref next = stream->waiting.front();
        held.await(next->after);
        const auto pause = all.random() % 4 == 0 ? all.random() % 200 : 0UL;  // microseconds
        const bool runs = all.devices[static_cast<std::size_t>(stream->device)].fault == cudaSuccess;
        held.without([&] {
            if (pause != 0) std::this_thread::sleep_for(std::chrono::microseconds{pause});
            next->come_after();
            if (runs && next->work) next->work();
            next->work = {};
            next->come_before();
        });
        next->after.clear();
        next->done = true;
        stream->waiting.pop_front();
        all.changed.notify_all();
    }
    all.streams.erase(stream);
    delete stream;
}

/// A device's default stream waits for its blocking streams, and they wait for it.
void add_default_order(CUstream_st* stream, std::vector<task_ref>& after) {
    for (CUstream_st* const other : machine::get().streams)
        if (other != stream && other->device == stream->device && other->last != nullptr &&
            ((stream->legacy && other->blocking) || (stream->blocking && other->legacy)))
            after.push_back(other->last);
}

}  // namespace

CUstream_st* new_stream(int device, bool blocking, bool legacy) {
    auto* const stream = new CUstream_st{.device = device, .blocking = blocking, .legacy = legacy};
    machine::get().streams.insert(stream);
    std::thread{serve, stream}.detach();
    return stream;
}

CUstream_st* stream_of(cudaStream_t handle) {
    machine& all = machine::get();
    if (handle == nullptr || handle == cudaStreamLegacy) {
        CUstream_st*& legacy = all.devices[static_cast<std::size_t>(current())].legacy;
        if (legacy == nullptr) legacy = new_stream(current(), false, true);
        return legacy;
    }
    if (handle == cudaStreamPerThread) {
        static thread_local struct own_streams {
            std::map<int, CUstream_st*> of;
            ~own_streams() {
                const lock held;
                for (const auto& [device, each] : of) each->closing = true;
                machine::get().changed.notify_all();
            }
        } own;
        CUstream_st*& stream = own.of[current()];
        if (stream == nullptr) stream = new_stream(current(), true, false);
        return stream;
    }
    return all.streams.contains(handle) && !handle->closing ? handle : nullptr;
}

std::vector<task_ref> last_of_all(int device) {
    std::vector<task_ref> result;
    for (const CUstream_st* const each : machine::get().streams)
        if (each->device == device && each->last != nullptr) result.push_back(each->last);
    return result;
}

cudaError_t enqueue(CUstream_st* stream, std::function<void()> work, std::vector<task_ref> after) {
    if (stream->taken) {
        capture& taken = *stream->taken;
        if (taken.broken) return cudaErrorStreamCaptureInvalidated;
        taken.nodes.push_back({std::move(work), stream->heads});
        stream->heads = {taken.nodes.size() - 1};
        return cudaSuccess;
    }
    if (stream->legacy)
        for (CUstream_st* const other : machine::get().streams)
            if (other->device == stream->device && other->blocking && other->taken) {
                other->taken->broken = true;
                return cudaErrorStreamCaptureImplicit;
            }
    add_default_order(stream, after);
    stream->last = std::make_shared<task>(task{std::move(work), std::move(after)});
    stream->waiting.push_back(stream->last);
    if (__tsan_release != nullptr) {
        // the lock hides what this thread did before from the stream, save for this
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
        stream->last->come_before();
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    }
    machine::get().changed.notify_all();
    return cudaSuccess;
}

}  // namespace cuda_double

using namespace cuda_double;

namespace {

cudaError_t fault_of(int device) { return machine::get().devices[static_cast<std::size_t>(device)].fault; }

/// Waits for a stream; not while it is captured.
cudaError_t await_stream(lock& held, CUstream_st* stream) {
    if (stream->taken) {
        stream->taken->broken = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    const int device = stream->device;
    std::vector<task_ref> tasks;
    if (stream->last) tasks.push_back(stream->last);
    if (stream->legacy) {  // which stands for all that block
        for (const CUstream_st* const each : machine::get().streams)
            if (each->device == device && each->blocking && each->last) tasks.push_back(each->last);
    }
    held.await(tasks);
    return fault_of(device);
}

cudaError_t make_stream(cudaStream_t* stream, unsigned flags) {
    *stream = new_stream(current(), flags != cudaStreamNonBlocking, false);
    return cudaSuccess;
}
cudaError_t make_event(cudaEvent_t* event) {
    *event = new CUevent_st{.device = current()};
    machine::get().events.insert(*event);
    return cudaSuccess;
}
bool exists(cudaEvent_t event) { return machine::get().events.contains(event); }

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return called("cudaStreamCreate", asks::no_fault, [&](lock&) { return make_stream(stream, cudaStreamDefault); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return called("cudaStreamCreateWithFlags", asks::no_fault, [&](lock&) { return make_stream(stream, flags); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return called("cudaStreamDestroy", asks::no_fault, [&](lock&) {
        if (!machine::get().streams.contains(stream) || stream->closing) return cudaErrorInvalidResourceHandle;
        if (stream->taken) stream->taken->broken = true;
        stream->closing = true;  // its thread ends it when all is done
        machine::get().changed.notify_all();
        return cudaSuccess;
    });
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    return called("cudaStreamSynchronize", asks::no_fault_nor_capture, [&](lock& held) {
        CUstream_st* const stream = stream_of(handle);
        return stream == nullptr ? cudaErrorInvalidResourceHandle : await_stream(held, stream);
    });
}
cudaError_t cudaDeviceSynchronize() {
    return called("cudaDeviceSynchronize", asks::no_fault_nor_capture, [&](lock& held) {
        const int device = current();
        held.await(last_of_all(device));
        return fault_of(device);
    });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
    return called("cudaStreamQuery", asks::no_fault_nor_capture, [&](lock& held) {
        CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        if (!stream->taken && stream->last && !stream->last->done) return cudaErrorNotReady;
        return await_stream(held, stream);
    });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
    return called("cudaStreamWaitEvent", asks::no_fault, [&](lock&) {
        CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr || !exists(event)) return cudaErrorInvalidResourceHandle;
        if (!event->taken) {
            if (!event->last) return cudaSuccess;  // never recorded
            if (!stream->taken) return enqueue(stream, {}, {event->last});
            stream->taken->broken = true;
            return cudaErrorStreamCaptureIsolation;
        }
        if (event->taken->over) return cudaErrorCapturedEvent;
        if (stream->taken && stream->taken != event->taken) {
            stream->taken->broken = event->taken->broken = true;
            return cudaErrorStreamCaptureMerge;
        }
        if (stream->legacy) {
            event->taken->broken = true;
            return cudaErrorStreamCaptureImplicit;
        }
        if (event->taken->broken) return cudaErrorStreamCaptureInvalidated;
        stream->taken = event->taken;  // it joins the capture, if it has not
        for (const std::size_t head : event->heads)
            if (std::find(stream->heads.begin(), stream->heads.end(), head) == stream->heads.end())
                stream->heads.push_back(head);
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return called("cudaEventCreate", asks::no_fault, [&](lock&) { return make_event(event); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    return called("cudaEventCreateWithFlags", asks::no_fault, [&](lock&) { return make_event(event); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return called("cudaEventDestroy", asks::nothing, [&](lock&) {
        if (machine::get().events.erase(event) == 0) return cudaErrorInvalidResourceHandle;
        delete event;
        return cudaSuccess;
    });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    return called("cudaEventRecord", asks::no_fault, [&](lock&) {
        CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr || !exists(event) || event->device != stream->device)
            return cudaErrorInvalidResourceHandle;
        if (const cudaError_t status = stream->taken ? cudaSuccess : enqueue(stream, {}); status != cudaSuccess)
            return status;
        if (stream->taken && stream->taken->broken) return cudaErrorStreamCaptureInvalidated;
        event->taken = stream->taken;
        event->heads = stream->heads;
        event->last = stream->taken ? nullptr : stream->last;
        return cudaSuccess;
    });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    return called("cudaEventQuery", asks::no_fault_nor_capture, [&](lock& held) {
        if (!exists(event)) return cudaErrorInvalidResourceHandle;
        if (event->taken) {
            event->taken->broken = true;
            return cudaErrorCapturedEvent;
        }
        if (!event->last) return cudaSuccess;
        if (!event->last->done) return cudaErrorNotReady;
        const int device = event->device;
        held.await({event->last});
        return fault_of(device);
    });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
    return called("cudaLaunchHostFunc", asks::no_fault, [&](lock&) {
        CUstream_st* const stream = stream_of(handle);
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        return enqueue(stream, [function, argument] { function(argument); });
    });
}
