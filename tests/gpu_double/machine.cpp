// SPDX-License-Identifier: Apache-2.0
// Devices, errors, and calls that are told to fail.
#include "machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_double {

namespace {

/// A number that the environment gives.
int said(const char* variable, int otherwise) {
    const char* const words = std::getenv(variable);
    return words == nullptr ? otherwise : std::atoi(words);
}

thread_local bool is_spared = false;

}  // namespace

spared::spared() { is_spared = true; }
spared::~spared() { is_spared = false; }

machine::machine()
    : processors{said("CUDA_DOUBLE_PROCESSORS", 4)}, random{static_cast<unsigned>(said("CUDA_DOUBLE_SEED", 1))} {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const int count = visible != nullptr && *visible == '\0' ? 0 : said("CUDA_DOUBLE_DEVICES", 1);
    for (int number = 0; number < count; ++number)
        devices.push_back(
            {.number = number, .free_blocks = 2 * processors, .pool = new CUmemPoolHandle_st{number, {number}}});
}

int& current() {
    static thread_local int device = 0;
    return device;
}
cudaError_t& last_error() {
    static thread_local struct left {
        cudaError_t status = cudaSuccess;
        ~left() {
            const lock held;
            machine::get().errors_left += status != cudaSuccess;
        }
    } last;
    return last.status;
}

cudaError_t admit(const char* name, asks what) {
    machine& all = machine::get();
    if (!is_spared) ++all.counts[name];
    if (!is_spared && all.failing_after >= 0 && (all.failing_name.empty() || all.failing_name == name) &&
        all.failing_after-- == 0)
        return all.failing_status;
    if (what == asks::nothing) return cudaSuccess;
    if (all.devices.empty()) return cudaErrorNoDevice;
    all.devices[static_cast<std::size_t>(current())].prepared = true;
    if (what == asks::no_fault_nor_capture)
        if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
    return all.devices[static_cast<std::size_t>(current())].fault;
}

void set_abilities(bool reach_each_other, bool launch_cooperatively) {
    const lock held;
    machine::get().reach_each_other = reach_each_other;
    machine::get().launch_cooperatively = launch_cooperatively;
}
void fail(const char* name, int before, cudaError_t status) {
    const lock held;
    machine& all = machine::get();
    all.failing_name = name == nullptr ? "" : name;
    all.failing_after = before;
    all.failing_status = status;
}
bool failed() {
    const lock held;
    machine& all = machine::get();
    const bool has = all.failing_after < 0;
    all.failing_after = -1;
    return has;
}
int devices_prepared() {
    const lock held;
    const auto& all = machine::get().devices;
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const device& each) { return each.prepared; }));
}
int errors_left() {
    const lock held;
    return std::exchange(machine::get().errors_left, 0) + (last_error() != cudaSuccess);
}
std::map<std::string, int> calls() {
    const lock held;
    return std::exchange(machine::get().counts, {});
}

}  // namespace cuda_double

using namespace cuda_double;

namespace {

struct description {
    cudaError_t status;
    const char* name;
    const char* words;
};
constexpr description descriptions[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "the driver is older than the runtime"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no device"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch", "the display driver is another than CUDA's"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "failed due to an error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge", "would merge two captures"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "the capture began in another stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "a forked stream was not joined"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation", "depends on uncaptured work"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit", "the default stream would depend on a capture"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "the event was last recorded in a capture"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "another thread began the capture"},
};
const description& description_of(cudaError_t status) {
    static constexpr description unknown{cudaErrorInvalidValue, "cudaErrorUnknown", "unknown error"};
    for (const description& each : descriptions)
        if (each.status == status) return each;
    return unknown;
}

bool exists(int device) { return device >= 0 && static_cast<std::size_t>(device) < machine::get().devices.size(); }

}  // namespace

const char* cudaGetErrorName(cudaError_t status) { return description_of(status).name; }
const char* cudaGetErrorString(cudaError_t status) { return description_of(status).words; }
cudaError_t cudaPeekAtLastError() { return last_error(); }
cudaError_t cudaGetLastError() { return std::exchange(last_error(), cudaSuccess); }

cudaError_t cudaDriverGetVersion(int* version) {
    return called("cudaDriverGetVersion", asks::nothing, [&](lock&) {
        *version = 11040;
        return cudaSuccess;
    });
}
cudaError_t cudaGetDeviceCount(int* count) {
    return called("cudaGetDeviceCount", asks::nothing, [&](lock&) {
        *count = static_cast<int>(machine::get().devices.size());
        return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
    });
}
cudaError_t cudaGetDevice(int* device) {
    return called("cudaGetDevice", asks::nothing, [&](lock&) {
        *device = current();
        return cudaSuccess;
    });
}
cudaError_t cudaSetDevice(int device) {
    return called("cudaSetDevice", asks::nothing, [&](lock&) {
        if (!exists(device)) return cudaErrorInvalidDevice;
        current() = device;
        machine::get().devices[static_cast<std::size_t>(device)].prepared = true;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
    return called("cudaDeviceGetAttribute", asks::no_fault, [&](lock&) {
        if (!exists(device)) return cudaErrorInvalidDevice;
        const machine& all = machine::get();
        *value = which == cudaDevAttrMultiProcessorCount ? all.processors
                 : which == cudaDevAttrCooperativeLaunch ? static_cast<int>(all.launch_cooperatively)
                                                         : 1;
        return cudaSuccess;
    });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* about, int device) {
    return called("cudaGetDeviceProperties", asks::no_fault, [&](lock&) {
        if (!exists(device)) return cudaErrorInvalidDevice;
        *about = {};
        std::snprintf(about->name, sizeof about->name, "double %d", device);
        std::memcpy(about->uuid.bytes, about->name, sizeof about->uuid.bytes);  // the same in all processes
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    return called("cudaDeviceCanAccessPeer", asks::no_fault, [&](lock&) {
        if (!exists(device) || !exists(peer)) return cudaErrorInvalidDevice;
        *can = device != peer && machine::get().reach_each_other;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
    return called("cudaDeviceEnablePeerAccess", asks::no_fault, [&](lock&) {
        if (!exists(peer) || peer == current()) return cudaErrorInvalidDevice;
        const bool anew = machine::get().devices[static_cast<std::size_t>(current())].peers.insert(peer).second;
        return anew ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
    });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, std::size_t) {
    return called("cudaOccupancyMaxActiveBlocksPerMultiprocessor", asks::no_fault, [&](lock&) {
        *blocks = 2;
        return cudaSuccess;
    });
}
