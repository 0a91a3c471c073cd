// SPDX-License-Identifier: Apache-2.0
// Stands for the CUDA driver on a machine without one. Memory of its device is host memory that no host code can touch: what
// forgets to stage it faults. Copies of a stream are carried out when somebody waits for them, and not before.
#include "cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

cuda_double double_of_cuda;

namespace {

enum status { success = 0, invalid_value = 1, no_memory = 2, invalid_context = 201, illegal_address = 700 };

struct block {
    std::size_t bytes;
    std::byte* seen;  // by copies
    bool managed;
};
struct stream {
    std::deque<std::function<void()>> queued;
    long taken = 0;  // of all that were queued
    void run(long until) {
        for (; taken < until && !queued.empty(); ++taken) {
            queued.front()();
            queued.pop_front();
        }
    }
};
struct event {
    stream* of = nullptr;
    long until = 0;
};

std::mutex mutex;
// never destroyed: communicators may be closed when the process ends
auto& blocks = *new std::map<std::uintptr_t, block>;
auto& streams = *new std::vector<stream*>;
auto& pinned = *new std::set<void*>;
thread_local int contexts;  // of the thread, one upon the other
int context;                // the only one; its address stands for it

const std::pair<const std::uintptr_t, block>* find(std::uintptr_t at) {
    const auto after = blocks.upper_bound(at);
    if (after == blocks.begin()) return nullptr;
    const auto& found = *std::prev(after);
    return at < found.first + found.second.bytes ? &found : nullptr;
}

/// Where copies find what lies at `at`; nullptr if `bytes` bytes do not all lie in a block.
std::byte* device(unsigned long long at, std::size_t bytes) {
    const auto* const found = find(at);
    if (found == nullptr || at + bytes > found->first + found->second.bytes) return nullptr;
    return found->second.seen + (at - found->first);
}

int queue(void* handle, void* to, const void* from, std::size_t bytes) {
    ++double_of_cuda.copies;
    if (contexts == 0) return invalid_context;
    if (to == nullptr || from == nullptr) return invalid_value;
    if (double_of_cuda.fails_at > 0 && --double_of_cuda.fails_at == 0) return illegal_address;
    static_cast<stream*>(handle)->queued.emplace_back([=] { std::memcpy(to, from, bytes); });
    return success;
}

int allocate(unsigned long long* at, std::size_t bytes, bool managed) {
    const std::lock_guard lock{mutex};
    const std::size_t length = (bytes + 4096) / 4096 * 4096;
    const int file = memfd_create("device", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(length)) != 0) return no_memory;
    void* const hidden = mmap(nullptr, length, managed ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, file, 0);
    void* const seen = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (hidden == MAP_FAILED || seen == MAP_FAILED) return no_memory;
    *at = reinterpret_cast<std::uintptr_t>(hidden);
    blocks[*at] = {bytes, static_cast<std::byte*>(seen), managed};
    return success;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return success; }
int cuGetErrorString(int status, const char** words) {
    *words = status == illegal_address ? "an illegal memory access was encountered" : "another error";
    return success;
}
int cuMemAlloc_v2(unsigned long long* at, std::size_t bytes) { return allocate(at, bytes, false); }
int cuMemAllocManaged(unsigned long long* at, std::size_t bytes, unsigned) { return allocate(at, bytes, true); }
int cuMemFree_v2(unsigned long long at) {
    const std::lock_guard lock{mutex};
    const auto found = blocks.find(at);
    if (found == blocks.end()) return invalid_value;
    munmap(reinterpret_cast<void*>(at), found->second.bytes);
    munmap(found->second.seen, found->second.bytes);
    blocks.erase(found);
    return success;
}
int cuMemcpy(unsigned long long to, unsigned long long from, std::size_t bytes) {
    const std::lock_guard lock{mutex};
    ++double_of_cuda.copies;
    if (contexts == 0) return invalid_context;
    if (bytes == 0) return success;
    std::byte* const target = device(to, bytes);
    const std::byte* const source = device(from, bytes);
    std::memcpy(target != nullptr ? target : reinterpret_cast<std::byte*>(to),
                source != nullptr ? source : reinterpret_cast<const std::byte*>(from), bytes);
    return success;
}
int cuPointerGetAttributes(unsigned count, int* asked, void** answers, unsigned long long at) {
    const std::lock_guard lock{mutex};
    const auto* const found = find(at);
    for (unsigned i = 0; i < count; ++i) switch (asked[i]) {
            case 1:
                *static_cast<void**>(answers[i]) = found != nullptr && double_of_cuda.is_pool == 0 ? &context : nullptr;
                break;
            case 2: *static_cast<unsigned*>(answers[i]) = found != nullptr ? 2U : 0U; break;
            case 8: *static_cast<int*>(answers[i]) = found != nullptr && found->second.managed ? 1 : 0; break;
            case 9: *static_cast<int*>(answers[i]) = found != nullptr ? 0 : -2; break;
            default: return invalid_value;
        }
    return success;
}
int cuPointerGetAttribute(void* answer, int asked, unsigned long long at) {
    return cuPointerGetAttributes(1, &asked, &answer, at);
}
int cuDeviceGetCount(int* count) { return *count = 1, success; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, success; }
int cuDevicePrimaryCtxRetain(void** its, int) { return *its = &context, success; }
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuCtxPushCurrent_v2(void* its) {
    if (its != &context) return invalid_context;
    ++contexts;
    return success;
}
int cuCtxPopCurrent_v2(void** its) {
    if (contexts == 0) return invalid_context;
    *its = &context;
    --contexts;
    return success;
}
int cuCtxSetCurrent(void* its) {
    if (its != &context) return invalid_context;
    contexts = std::max(contexts, 1);
    return success;
}
int cuCtxGetCurrent(void** its) { return *its = contexts == 0 ? nullptr : &context, success; }
int cuCtxSynchronize() {
    const std::lock_guard lock{mutex};
    if (contexts == 0) return invalid_context;
    ++double_of_cuda.synchronised;
    for (stream* const each : streams) each->run(each->taken + static_cast<long>(each->queued.size()));
    return success;
}
int cuStreamCreate(void** made, unsigned) {
    const std::lock_guard lock{mutex};
    if (contexts == 0) return invalid_context;
    ++double_of_cuda.made;
    streams.push_back(new stream);
    *made = streams.back();
    return success;
}
int cuStreamSynchronize(void* of) { return of == nullptr ? success : invalid_value; }  // programs have none but ours
int cuStreamDestroy_v2(void* of) {
    const std::lock_guard lock{mutex};
    --double_of_cuda.made;
    streams.erase(std::find(streams.begin(), streams.end(), of));
    delete static_cast<stream*>(of);
    return success;
}
int cuEventCreate(void** made, unsigned) {
    if (contexts == 0) return invalid_context;
    ++double_of_cuda.made;
    *made = new event;
    return success;
}
int cuEventDestroy_v2(void* of) {
    --double_of_cuda.made;
    delete static_cast<event*>(of);
    return success;
}
int cuEventRecord(void* what, void* of) {
    const std::lock_guard lock{mutex};
    auto* const its = static_cast<stream*>(of);
    *static_cast<event*>(what) = {its, its->taken + static_cast<long>(its->queued.size())};
    return success;
}
int cuEventSynchronize(void* what) {
    const std::lock_guard lock{mutex};
    const auto* const waits = static_cast<event*>(what);
    if (waits->of != nullptr) waits->of->run(waits->until);
    return success;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* of) {
    const std::lock_guard lock{mutex};
    return queue(of, to, device(from, bytes), bytes);
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void* of) {
    const std::lock_guard lock{mutex};
    return queue(of, device(to, bytes), from, bytes);
}
int cuMemHostRegister_v2(void* data, std::size_t, unsigned) {
    const std::lock_guard lock{mutex};
    if (contexts == 0) return invalid_context;
    if (!pinned.insert(data).second) return invalid_value;
    ++double_of_cuda.pinned;
    return success;
}
int cuMemHostUnregister(void* data) {
    const std::lock_guard lock{mutex};
    if (contexts == 0) return invalid_context;
    if (pinned.erase(data) == 0) return invalid_value;
    --double_of_cuda.pinned;
    return success;
}

}  // extern "C"
