// SPDX-License-Identifier: Apache-2.0
// Device memory by NCCL: a process on each GPU, and levels of processes with NCCL inside. Without a GPU: what a program is
// told that finds none.
#include <ddl/nccl.cuh>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/staged.cuh>
#include <ddl/transport/threads.hpp>

#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "../collective/require.hpp"
#include "gpu_test.cuh"
#ifdef CUDA_DOUBLE
#include "../gpu_double/failing_calls.hpp"
#endif

namespace {

using vector = thrust::device_vector<float>;

std::vector<float> on_the_host(const vector& values) {
    std::vector<float> result(values.size());
    thrust::copy(values.begin(), values.end(), result.begin());
    return result;
}

/// Calls that enqueue go into a graph; requests are refused, and the capture and the communicator are as good as before.
template <class Host>
void capture(ddl::nccl<Host>& gpus) {
    const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "capture", gpus.rank(), gpus.device()); };
    vector values(10, 1.0F);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runs = nullptr;
    good(cudaDeviceSynchronize());
    good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    auto queued = gpus.on(stream);
    good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    require_error(ddl::errc::invalid_argument, "under capture", [&] { ddl::allreduce_async(queued, values).wait(); });
    require_error(ddl::errc::invalid_argument, "under capture", [&] { queued.wait(); });
    ddl::allreduce(queued, values);
    good(cudaStreamEndCapture(stream, &graph));
    good(cudaGraphInstantiate(&runs, graph, 0));
    good(cudaGraphLaunch(runs, stream));
    queued.wait();
    require(on_the_host(values) == std::vector<float>(10, static_cast<float>(gpus.size())), "a sum of a graph");
    if (gpus.rank() == 0) good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    if (gpus.size() > 1)
        require_error(gpus.rank() == 0 ? ddl::errc::invalid_argument : ddl::errc::mismatch,
                      gpus.rank() == 0 ? "under capture" : "see its own error",
                      [&] { ddl::allreduce_async(queued, values).wait(); });
    if (gpus.rank() == 0) {
        cudaGraph_t empty = nullptr;
        good(cudaStreamEndCapture(stream, &empty));
        good(cudaGraphDestroy(empty));
    }
    ddl::allreduce(gpus, values, ddl::maximum{});
    good(cudaGraphExecDestroy(runs));
    good(cudaGraphDestroy(graph));
    good(cudaStreamDestroy(stream));
}

/// Every collective over `gpus`, of lengths that ranks share evenly and of others.
template <class Host>
void carry_all(ddl::nccl<Host>& gpus) {
    const int size = gpus.size();
    const float all = static_cast<float>(size * (size + 1)) / 2;
    const float ours = static_cast<float>(gpus.rank() + 1);
    for (const std::size_t each : {1, 1000, 100'000})
        for (const std::size_t more : {0, 1}) {
            const std::size_t count = each * static_cast<std::size_t>(size) + more;
            const auto block = ddl::block(count, size, gpus.rank());
            const auto wanted = [](std::size_t n, float value) { return std::vector<float>(n, value); };
            vector in(count, ours);
            vector out(count);
            ddl::allreduce(gpus, in, out);
            require(on_the_host(out) == wanted(count, all), "allreduce");
            ddl::allreduce(gpus, in, out, ddl::average{});
            for (const float value : on_the_host(out))  // NCCL may scale before it sums
                require(std::abs(value * static_cast<float>(size) / all - 1) < 1e-5F, "the average");
            ddl::allreduce(gpus, in, out, ddl::maximum{});
            require(on_the_host(out) == wanted(count, static_cast<float>(size)), "the largest");
            vector part(block.count);
            ddl::reduce_scatter(gpus, in, part);
            require(on_the_host(part) == wanted(block.count, all), "reduce_scatter");
            part = vector(block.count, 7.0F);
            ddl::all_gather(gpus, part, out);
            require(on_the_host(out) == wanted(count, 7), "all_gather");
            ddl::broadcast(gpus, in, size - 1);
            require(on_the_host(in) == wanted(count, static_cast<float>(size)), "broadcast");
            ddl::reduce(gpus, in, out, ddl::sum{}, 0);
            if (gpus.rank() == 0) require(on_the_host(out) == wanted(count, static_cast<float>(size * size)), "reduce");
            vector blocks(each * static_cast<std::size_t>(size), ours);
            vector one(each, ours);
            ddl::gather(gpus, one, blocks, size - 1);
            ddl::scatter(gpus, blocks, one, size - 1);
            require(on_the_host(one) == wanted(each, ours), "what was gathered is scattered");
            blocks = vector(blocks.size(), ours);
            vector beside(blocks.size());
            ddl::all_to_all(gpus, blocks, beside);
            ddl::all_to_all(gpus, blocks);
            require(on_the_host(blocks) == on_the_host(beside), "all_to_all in place");
            for (int peer = 0; peer < size; ++peer)
                require(on_the_host(beside)[each * static_cast<std::size_t>(peer)] == static_cast<float>(peer + 1),
                        "all_to_all");
        }
    ddl::barrier(gpus);
    vector on_a_stream(10, ours);
    auto queued = gpus.on(thrust::cuda::par_nosync.on(cudaStreamPerThread));
    ddl::allreduce(queued, on_a_stream, ddl::maximum{});
    queued.wait();
    require(on_the_host(on_a_stream) == std::vector<float>(10, static_cast<float>(size)), "a policy's stream");
    capture(gpus);
    std::vector<float> elsewhere(10);
    require_error(ddl::errc::invalid_argument, "is no memory of CUDA device", [&] { ddl::allreduce(gpus, elsewhere); });
    int reaches = 0;  // the next rank's GPU this one
    if (size > 1)
        ddl::require_cuda(cudaDeviceCanAccessPeer(&reaches, (gpus.rank() + 1) % size, gpus.device()),
                          "cudaDeviceCanAccessPeer", gpus.rank(), gpus.device());
    if (reaches == 0) return;
    float* pooled = nullptr;
    ddl::require_cuda(cudaMallocAsync(&pooled, 40, nullptr), "cudaMallocAsync", gpus.rank(), gpus.device());
    require_error(ddl::errc::invalid_argument, "grant it by cudaMemPoolSetAccess, or pass memory of cudaMalloc", [&] {
        ddl::allreduce(gpus, std::span{pooled, 10});
    });
    ddl::require_cuda(cudaFreeAsync(pooled, nullptr), "cudaFreeAsync", gpus.rank(), gpus.device());
}

/// Compiled here, run where several GPUs are: two nodes of `size / 2` threads each.
void carry_levels(ddl::threads& node, ddl::threads& wire) {
    ddl::nccl gpus{node};
    ddl::staged across{wire};
    ddl::layered world{gpus, across};
    vector values(10'001, static_cast<float>(world.rank() + 1));
    ddl::allreduce(world, values);
    const float all = static_cast<float>(world.size() * (world.size() + 1)) / 2;
    require(on_the_host(values) == std::vector<float>(values.size(), all), "levels");
    ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::ring>>(world, values, ddl::maximum{});
    require(on_the_host(values) == std::vector<float>(values.size(), all), "a hierarchy whose inner level is NCCL");
    for (int root = 0; root < world.size(); ++root) {
        vector ours(1001, static_cast<float>(world.rank() + 1));
        vector sums(1001);
        ddl::reduce(world, ours, sums, ddl::sum{}, root);
        if (world.rank() == root) require(on_the_host(sums) == std::vector<float>(1001, all), "reduce over levels");
        ddl::broadcast(world, ours, root);
        require(on_the_host(ours) == std::vector<float>(1001, static_cast<float>(root + 1)), "broadcast over levels");
    }
    ddl::barrier(world);
}

void expect_no_device() {
    ddl::threads::run(2, [](ddl::threads& host) {
        const ddl::error failure = error_of([&] { ddl::nccl gpus{host}; });
        require(failure.code() == ddl::errc::system && std::strcmp(failure.operation(), "nccl") == 0, failure.what());
        require(std::strstr(failure.what(), "there is no CUDA d") != nullptr, failure.what());  // device, or driver
        ddl::barrier(host);  // the host's communicator is as good as before
    });
}

#ifdef CUDA_DOUBLE
void fail_in_each_call() {
    const auto job = [] {
        ddl::threads::run(
            2,
            [](ddl::threads& host) {
                {
                    const cuda_double::spared aside;
                    static_cast<void>(cudaSetDevice(host.rank()));
                }
                const ones data;
                all_told.listen_to([&] {
                    ddl::nccl gpus{host};
                    ddl::allreduce(gpus, data.values());
                    auto queued = gpus.on(cudaStreamPerThread);
                    ddl::all_to_all_async(queued, data.values()).wait();
                    ddl::all_gather(queued, data.values().first(9999));
                    queued.wait();
                });
                require(data.last() == 2, "a sum");
            },
            ddl::timeout{10});
    };
    every_call_may_fail("nccl", job, "cudaGetDevice");  // before memory is given back
}

/// A call that fails aborts those before it on its rank: a wait for them says so.
void a_wait_tells_of_calls_that_a_failed_one_has_aborted() {
    ddl::threads::run(
        2,
        [](ddl::threads& host) {
            const int rank = host.rank();
            const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "streams", rank, rank); };
            good(cudaSetDevice(rank));
            ddl::nccl gpus{host};
            const ones data;
            cudaStream_t stream = nullptr;
            good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            auto queued = gpus.on(stream);
            std::atomic<bool> goes_on{false};
            if (rank == 1)
                good(cudaLaunchHostFunc(
                    stream,
                    [](void* flag) {
                        while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
                    },
                    &goes_on));
            ddl::allreduce(queued, data.values());
            ddl::barrier(host);
            if (rank == 1) {
                {
                    struct release {
                        std::atomic<bool>& goes_on;
                        cudaStream_t stream;
                        ~release() {
                            goes_on = true;
                            static_cast<void>(cudaStreamSynchronize(stream));
                        }
                    } const at_end{goes_on, stream};
                    cuda_double::fail("ncclAllReduce", 0, cudaErrorLaunchFailure);
                    require_error(ddl::errc::system, "NCCL says", [&] { ddl::allreduce(queued, data.values()); });
                }
                require_error(ddl::errc::broken, "NCCL says", [&] { queued.wait(); });
            } else {
                const cuda_double::spared never_fails;
                require_error(ddl::errc::system, "a peer gave up", [&] {
                    ddl::allreduce(queued, data.values());
                    queued.wait();
                });
            }
        },
        ddl::timeout{60});
}

/// What one rank is told whose peer does not come: a mismatch, an end, a GPU that is another's, too.
void peers_that_do_not_come(int devices) {
    ddl::threads::run(
        2,
        [](ddl::threads& host) {
            ddl::require_cuda(cudaSetDevice(0), "cudaSetDevice", host.rank(), 0);
            require_error(ddl::errc::system, "NCCL says invalid usage", [&] { ddl::nccl gpus{host}; });
        },
        ddl::timeout{10});
    std::atomic<int> called{0};
    ddl::threads::run(
        devices,
        [&](ddl::threads& host) {
            ddl::require_cuda(cudaSetDevice(host.rank()), "cudaSetDevice", host.rank(), host.rank());
            ddl::nccl gpus{host};
            vector more(host.rank() == 1 ? 11 : 10, 1.0F);
            vector values(10, 1.0F);
            require_error(ddl::errc::mismatch, "pass equal counts on every rank", [&] { ddl::allreduce(gpus, more); });
            ddl::allreduce(gpus, values);  // on all, as before
            require(on_the_host(values)[0] == static_cast<float>(host.size()), "a sum after a mismatch");
            ++called;
            if (host.rank() == 1) {
                while (called != devices) std::this_thread::yield();
                host.fail(ddl::errc::system, "it has other plans");
                return;
            }
            require_error(ddl::errc::system, "a peer gave up [it has other plans]",
                          [&] { ddl::allreduce(gpus, values); });
        },
        ddl::timeout{60});
}
#endif

}  // namespace

int main() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) try {
            expect_no_device();
        } catch (const std::exception& failure) {
            std::printf("gpu.nccl failed: %s\n", failure.what());
            return 1;
        }
    return on_a_gpu("gpu.nccl", [&] {
        const auto body = [](ddl::threads& host) {
            ddl::require_cuda(cudaSetDevice(host.rank()), "cudaSetDevice", host.rank(), host.rank());
            ddl::nccl gpus{host};
            carry_all(gpus);
            if (host.size() % 2 != 0) return;
            ddl::threads node = host.split(host.rank() / (host.size() / 2), 0);
            ddl::threads wire = host.split(host.rank() % (host.size() / 2), 0);
            carry_levels(node, wire);
        };
        ddl::threads::run(1, body, ddl::timeout{60});
        if (devices > 1) ddl::threads::run(devices, body, ddl::timeout{60});
#ifdef CUDA_DOUBLE
        peers_that_do_not_come(devices);
        a_wait_tells_of_calls_that_a_failed_one_has_aborted();
        fail_in_each_call();
#endif
    });
}
