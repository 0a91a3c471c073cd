// SPDX-License-Identifier: Apache-2.0
// Each call of the runtime that a job makes fails once: the job must say so by the call's name and its device, or end well where
// nobody could be told; and never hang.
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/transport/cuda_ipc_device.cuh>
#include <ddl/transport/cuda_peer.cuh>
#include <ddl/transport/staged.cuh>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>

#include "../collective/require.hpp"
#include "../gpu/gpu_test.cuh"

namespace {

constexpr std::size_t count = 20'000;

/// Ones on a device, that no failing call is spent on.
class ones {
public:
    ones() {
        const cuda_double::spared aside;
        static_cast<void>(cudaMalloc(&data_, count * sizeof(float)));
        const std::vector<float> values(count, 1.0F);
        static_cast<void>(cudaMemcpy(data_, values.data(), count * sizeof(float), cudaMemcpyDefault));
    }
    ones(const ones&) = delete;
    ones& operator=(const ones&) = delete;
    ~ones() {
        const cuda_double::spared aside;
        static_cast<void>(cudaFree(data_));
    }
    std::span<float> values() const { return {data_, count}; }
    float last() const {
        const cuda_double::spared aside;
        float value = 0;
        static_cast<void>(cudaMemcpy(&value, data_ + count - 1, sizeof value, cudaMemcpyDefault));
        return value;
    }

private:
    float* data_ = nullptr;
};

/// What the runtime, and the driver, is asked for in a job. Those in brackets give things back: nobody is there to be told.
struct asked {
    const char* name;
    bool tells;
};
constexpr asked all_calls[] = {
    {"cudaGetDeviceCount", true},
    {"cudaGetDevice", true},
    {"cudaSetDevice", true},
    {"cudaDeviceGetAttribute", true},
    {"cudaGetDeviceProperties", true},
    {"cudaOccupancyMaxActiveBlocksPerMultiprocessor", true},
    {"cudaDeviceCanAccessPeer", true},
    {"cudaDeviceEnablePeerAccess", true},
    {"cudaGetDriverEntryPointByVersion", true},
    {"cuPointerGetAttributes", true},
    {"cudaPointerGetAttributes", true},
    {"cudaMalloc", true},
    {"cudaHostAlloc", true},
    {"cudaMemset", true},
    {"cudaMemcpyAsync", true},
    {"cudaDeviceSynchronize", true},
    {"cudaStreamCreateWithFlags", true},
    {"cudaEventCreateWithFlags", true},
    {"cudaEventRecord", true},
    {"cudaEventQuery", true},
    {"cudaStreamWaitEvent", true},
    {"cudaStreamSynchronize", true},
    {"cudaStreamIsCapturing", true},
    {"cudaThreadExchangeStreamCaptureMode", true},
    {"cudaLaunchCooperativeKernel", true},
};

/// `job` with one of its calls failing: each in turn, of each name.
template <class Job>
void every_call_may_fail(const char* what, Job job) {
    job();
    for (const asked& each : all_calls) static_cast<void>(cuda_double::calls(each.name));
    job();
    int all = 0;
    int told = 0;
    for (const asked& each : all_calls) {
        const int number = cuda_double::calls(each.name);
        for (int before = 0; before < number; ++before) {
            cuda_double::fail(each.name, before, cudaErrorLaunchFailure);
            const auto start = std::chrono::steady_clock::now();
            const ddl::error failure = error_of(job);
            const bool happened = cuda_double::failed();
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
            const std::string text = failure.what();
            const std::string where = std::string{what} + ", " + each.name + " " + std::to_string(before) + ": ";
            require(seconds.count() < 5, where + "somebody waits for whom nothing keeps");
            if (!happened) continue;  // another order of threads
            ++all;
            if (failure.code() == no_error) continue;
            ++told;
            std::string name = each.name;  // as it is told: without what a version, or flags, add
            for (const char* const ending : {"ByVersion", "WithFlags"})
                if (name.ends_with(ending)) name.resize(name.size() - std::strlen(ending));
            require(text.find(name) != std::string::npos && text.find("CUDA device ") != std::string::npos &&
                        text.find("cudaErrorLaunchFailure") != std::string::npos,
                    where + "told as '" + text + "'");
            require(cudaGetLastError() == cudaSuccess, where + "the error is left for others");
        }
        if (number != 0) std::printf("%s: %s %d, told %d of %d\n", what, each.name, number, told, all);
    }
    std::printf("%s: %d calls failed, %d of them were told\n", what, all, told);
}

void peers() {
    ddl::cuda_peer::run(
        2,
        [](ddl::cuda_peer& team) {
            const ones data;
            ddl::allreduce(team, data.values());
            auto queued = team.on(cudaStreamPerThread);
            ddl::allreduce_async(queued, data.values()).wait();
            queued.wait();
            require(data.last() == 4, "two sums");
        },
        ddl::timeout{10});
}
void stages() {
    ddl::threads::run(
        2,
        [](ddl::threads& host) {
            ddl::staged team{host, ddl::staging_shape{.chunk_bytes = 1 << 14, .streams = 2}};
            const ones data;
            ddl::allreduce(team, data.values());
            auto queued = team.on(cudaStreamPerThread);
            ddl::allreduce_async(queued, data.values()).wait();
            require(data.last() == 4, "two sums");
        },
        ddl::timeout{10});
}

}  // namespace

int main() {
    return on_a_gpu("gpu_double.calls", [] {
        every_call_may_fail("cuda_peer", peers);
        every_call_may_fail("staged", stages);
    });
}
