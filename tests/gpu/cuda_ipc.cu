// SPDX-License-Identifier: Apache-2.0
// Device memory of several processes, which share a GPU, or have one each where there are enough.
#include <ddl/allreduce.hpp>
#include <ddl/transport/cuda_ipc.cuh>
#include <ddl/transport/shared_memory.hpp>

#include <cstdio>
#include <span>
#include <sys/wait.h>
#include <unistd.h>

#include "created_memory.cuh"
#include "peer_checks.cuh"
#ifdef CUDA_DOUBLE
#include "../gpu_double/failing_calls.hpp"
#endif

namespace {

constexpr int ranks = 3;

template <class Team>
void sum_in(Team& team, float* data, std::size_t count, const char* which) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>(i % 100 + static_cast<std::size_t>(team.rank()));
    ddl::require_cuda(cudaMemcpy(data, values.data(), count * sizeof(float), cudaMemcpyDefault), "cudaMemcpy", -1, 0);
    ddl::allreduce(team, std::span{data, count});
    ddl::require_cuda(cudaMemcpy(values.data(), data, count * sizeof(float), cudaMemcpyDefault), "cudaMemcpy", -1, 0);
    for (std::size_t i = 0; i < count; ++i)
        require(values[i] == static_cast<float>(i % 100 * ranks + 3),
                std::string{which} + ": the sum of " + std::to_string(count) + " elements at " + std::to_string(i));
}

/// Calls that are enqueued, requests, tensors, and a stream under capture.
void on_streams(ddl::cuda_ipc<ddl::shared_memory>& team, cudaStream_t stream) {
    thrust::device_vector<float> values(1001, static_cast<float>(team.rank()));
    const std::span all{thrust::raw_pointer_cast(values.data()), values.size()};
    ddl::require_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize", team.rank(), 0);
    auto queued = team.on(stream);
    static_assert(std::same_as<decltype(queued), ddl::cuda_ipc<ddl::shared_memory>>, "it has the same limits");
    static_assert(std::same_as<decltype(team.on(thrust::cuda::par.on(stream))), decltype(queued)>);
    ddl::allreduce(queued, all);
    const ddl::request again = ddl::allreduce_async(queued, all);
    again.wait();
    ddl::allreduce_n(queued, std::vector{all.first(1), all.subspan(1)});
    queued.wait();
    const thrust::host_vector<float> got = values;
    for (const float each : got) require(each == 3.0F * ranks * ranks, "three sums, one after the other");
    ddl::require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture", -1, 0);
    require_error(ddl::errc::invalid_argument, "under capture", [&] { ddl::allreduce(queued, all); });
    cudaGraph_t graph = nullptr;
    ddl::require_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture", -1, 0);
    ddl::require_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy", -1, 0);
    for (int turn = 0; turn < 20; ++turn) {
        static_cast<void>(cudaSetDevice(-1));  // a mistake of the program's, at which it looks afterwards
        ddl::allreduce(team, all);
        require(cudaGetLastError() != cudaSuccess, "an error of the program's is lost");
    }
    team.forget();
}

/// What processes cannot share is refused, each kind in words of its own; the communicator is as good as before.
void mistakes(ddl::cuda_ipc<ddl::shared_memory>& team) {
    const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "mistakes", team.rank(), 0); };
    const auto refused = [&](const char* words, float* place, std::size_t count = 100) {
        require_error(ddl::errc::invalid_argument, words, [&] { ddl::allreduce(team, std::span{place, count}); });
    };
    float* data = nullptr;
    good(cudaMallocManaged(&data, 400));
    refused("in is managed memory, which processes cannot share", data);
    good(cudaFree(data));
    const int here = team.device().number();
    const created_memory of_this_process{here, 400, CU_MEM_HANDLE_TYPE_NONE};
    refused("in was made by cuMemCreate for this process alone", of_this_process.data());
    good(cudaMalloc(&data, 400));
    refused("in runs on into another allocation", data, std::size_t{1} << 30);
    good(cudaFree(data));
    if (const int devices = ddl::require_devices("gpu.cuda_ipc"); devices > 1) {
        const ddl::device_scope there{(here + 1) % devices, team.rank()};
        good(cudaMalloc(&data, 400));
        refused("pass memory of the rank's device", data);
        good(cudaFree(data));
    }
}

void run_rank(const std::string& job, int rank) {
    ddl::shared_memory node{job, rank, ranks, ddl::timeout{20}};
    ddl::require_cuda(cudaSetDevice(rank % ddl::require_devices("gpu.cuda_ipc")), "cudaSetDevice", rank, 0);
    ddl::cuda_ipc team{node};
    for (const std::size_t count : {1, 1000, 16'385, 1'000'003}) {
        if (rank == 0) std::fprintf(stderr, "cuda_ipc: %zu elements, %d processes\n", count, ranks);
        for (int turn = 0; turn < 2; ++turn) {  // the second is freed and allocated anew, often at the same address
            float* data = nullptr;
            ddl::require_cuda(cudaMalloc(&data, (count + 3) * sizeof(float)), "cudaMalloc", rank, 0);
            sum_in(team, data + 3, count, "cudaMalloc");
            team.forget();
            ddl::require_cuda(cudaFree(data), "cudaFree", rank, 0);
        }
        const created_memory created{team.device().number(), count * sizeof(float)};
        sum_in(team, created.data(), count, "cuMemCreate");
        team.forget();
    }
    others<float>(team);
    cudaStream_t stream = nullptr;
    ddl::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate", rank, 0);
    float* data = nullptr;
    ddl::require_cuda(cudaMallocAsync(&data, 400, stream), "cudaMallocAsync", rank, 0);
    require_error(ddl::errc::invalid_argument, "is cudaMallocAsync's memory", [&] {
        ddl::allreduce(team.on(stream), std::span{data, 100});
    });
    std::vector<float> on_the_host(100);
    require_error(ddl::errc::invalid_argument, "is host memory", [&] { ddl::allreduce(team, on_the_host); });
    ddl::require_cuda(cudaFreeAsync(data, stream), "cudaFreeAsync", rank, 0);
    on_streams(team, stream);
#ifdef CUDA_DOUBLE
    require(cuda_double::devices_prepared() == 1, "a process took up a GPU that is not its own");
#endif
    mistakes(team);
    team.on(stream).wait();
    ddl::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy", rank, 0);
}

#ifdef CUDA_DOUBLE
void fail_in_each_call(const std::string& job, int rank) {
    ddl::shared_memory control{job, rank, 2, ddl::timeout{60}};
    int number = 0;
    every_call_of_a_process_may_fail("cuda_ipc", control, [&] {
        ddl::shared_memory node{job + "-" + std::to_string(++number), rank, 2, ddl::timeout{20}};
        const ones data;
        try {
            ddl::cuda_ipc team{node};
            ddl::allreduce(team, data.values());
            auto queued = team.on(cudaStreamPerThread);
            ddl::allreduce_async(queued, data.values()).wait();
            queued.wait();
            team.forget();
            require(data.last() == 4, "two sums");
        } catch (const ddl::error& failure) {
            node.fail(failure.code(), failure.what());
            throw;
        }
    });
}
#endif

}  // namespace

int main([[maybe_unused]] int count_of_words, char**) {
    // before any call of CUDA, which does not survive a fork: the first child says whether there is a GPU
    const std::string job = "gpu-cuda-ipc-" + std::to_string(::getpid());
    std::vector<pid_t> children;
#ifdef CUDA_DOUBLE
    const bool fails = count_of_words > 1;  // --calls
    const auto run = fails ? fail_in_each_call : run_rank;
    const int size = fails ? 2 : ranks;
#else
    const auto run = run_rank;
    const int size = ranks;
#endif
    for (int rank = 0; rank < size; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(1000);
            const int result = on_a_gpu("gpu.cuda_ipc", [&] { run(job, rank); });
            std::fflush(stdout);
            ::_exit(result);
        }
        children.push_back(child);
    }
    int result = 0;
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        const int left = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (left != 0 && (left != skipped || result == 0)) result = left;
    }
    return result;
}
