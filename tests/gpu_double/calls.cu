// SPDX-License-Identifier: Apache-2.0
// Calls keep to their streams. And each call of the runtime that a job makes fails once: the job must say so by the call's name and
// its device, or end well where nobody could be told; and never hang.
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/transport/cuda_ipc_device.cuh>
#include <ddl/transport/cuda_peer.cuh>
#include <ddl/transport/staged.cuh>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "../collective/require.hpp"
#include "../gpu/gpu_test.cuh"

namespace {

constexpr std::size_t count = 20'000;
constexpr int most_of_a_name = 40;  // requests are looked at again and again

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

/// What the runtime, and the driver, is asked for in a job.
constexpr const char* all_calls[] = {
    "cudaGetDeviceCount",
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaDeviceGetAttribute",
    "cudaGetDeviceProperties",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaDeviceCanAccessPeer",
    "cudaDeviceEnablePeerAccess",
    "cudaGetDriverEntryPointByVersion",
    "cuPointerGetAttributes",
    "cudaPointerGetAttributes",
    "cudaMalloc",
    "cudaHostAlloc",
    "cudaMemset",
    "cudaMemcpyAsync",
    "cudaDeviceSynchronize",
    "cudaStreamCreateWithFlags",
    "cudaEventCreateWithFlags",
    "cudaEventRecord",
    "cudaEventQuery",
    "cudaStreamWaitEvent",
    "cudaStreamSynchronize",
    "cudaStreamIsCapturing",
    "cudaStreamGetCaptureInfo",
    "cudaThreadExchangeStreamCaptureMode",
    "cudaLaunchCooperativeKernel",
    "cudaFree",
    "cudaFreeHost",
    "cudaEventDestroy",
    "cudaStreamDestroy",
};

/// Those that give back, or wait for, what a job leaves, too, where there is nobody to tell.
constexpr std::string_view quiet_calls[] = {
    "cudaSetDevice", "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaThreadExchangeStreamCaptureMode",
    "cudaFree",      "cudaFreeHost",          "cudaEventDestroy",      "cudaStreamDestroy",
};

/// What the ranks of a job have thrown, and its caller was told.
class told {
public:
    void add(const char* text) {
        const std::lock_guard lock{mutex_};
        texts_ += std::string{text} + "\n";
    }
    std::string take() { return std::exchange(texts_, {}); }

    /// Runs a rank, or a job.
    template <class Body>
    void listen_to(Body body) {
        try {
            body();
        } catch (const std::exception& failure) {
            add(failure.what());
            throw;
        }
    }

private:
    std::mutex mutex_;
    std::string texts_;
};
told all_told;

/// `job` with one of its calls failing: each in turn, of each name.
template <class Job>
void every_call_may_fail(const char* what, Job job) {
    job();
    require(cuda_double::errors_left() == 0, "an error stays where none was thrown");
    const auto counted = [] {
        std::vector<int> numbers;
        for (const char* const name : all_calls) numbers.push_back(std::min(cuda_double::calls(name), most_of_a_name));
        return numbers;
    };
    static_cast<void>(counted());
    job();
    int all = 0;
    int heard = 0;
    const std::vector<int> numbers = counted();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const char* const called = all_calls[i];
        bool once_slow = false;
        for (int before = 0; before < numbers[i]; ++before) {
            cuda_double::fail(called, before, cudaErrorLaunchFailure);
            const auto start = std::chrono::steady_clock::now();
            const ddl::error failure = error_of([&] { all_told.listen_to(job); });
            const bool happened = cuda_double::failed();
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
            const std::string text = all_told.take();
            const std::string where = std::string{what} + ", " + called + " " + std::to_string(before) + ": ";
            const bool slow = seconds.count() >= 5;
            require(!slow || !once_slow, where + "somebody waited in vain: " + text);
            once_slow = slow;
            if (slow) {  // a machine may be busy for a while, but hardly in the same call again
                --before;
                continue;
            }
            require(cuda_double::errors_left() == 0, where + "an error stays for whoever asks next");
            if (!happened) continue;  // another order of threads
            ++all;
            if (failure.code() == no_error) {
                require(std::find(std::begin(quiet_calls), std::end(quiet_calls), called) != std::end(quiet_calls),
                        where + "nobody was told");
                continue;
            }
            ++heard;
            std::string name = called;  // as it is told: without what a version, or flags, add
            for (const char* const ending : {"ByVersion", "WithFlags"})
                if (name.ends_with(ending)) name.resize(name.size() - std::strlen(ending));
            require(text.find(name) != std::string::npos && text.find("CUDA device ") != std::string::npos &&
                        (text.find("cudaErrorLaunchFailure") != std::string::npos ||
                         text.find("error 719") != std::string::npos),
                    where + "told as " + text);
        }
    }
    std::printf("%s: %d calls failed, %d of them were told\n", what, all, heard);
}

void peers() {
    ddl::cuda_peer::run(
        2,
        [](ddl::cuda_peer& team) {
            const ones data;
            all_told.listen_to([&] {
                ddl::allreduce(team, data.values());
                auto queued = team.on(cudaStreamPerThread);
                ddl::allreduce_async(queued, data.values()).wait();
                queued.wait();
            });
            require(data.last() == 4, "two sums");
        },
        ddl::timeout{10});
}
void stages() {
    ddl::threads::run(
        2,
        [](ddl::threads& host) {
            const ones data;
            all_told.listen_to([&] {
                ddl::staged team{host, ddl::staging_shape{.chunk_bytes = 1 << 14, .streams = 2}};
                ddl::allreduce(team, data.values());
                auto queued = team.on(cudaStreamPerThread);
                ddl::allreduce_async(queued, data.values()).wait();
            });
            require(data.last() == 4, "two sums");
        },
        ddl::timeout{10});
}

/// Each rank has work on a stream of its own, some of it slow, before a call and after it: of zeros nothing but zeros may come.
void calls_keep_to_their_streams() {
    ddl::cuda_peer::run(
        3,
        [](ddl::cuda_peer& team) {
            const auto good = [&](cudaError_t status) {
                ddl::require_cuda(status, "streams", team.rank(), team.device());
            };
            const ones data;
            cudaStream_t stream = nullptr;
            void* pinned = nullptr;
            good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            good(cudaHostAlloc(&pinned, count * sizeof(float), 0));
            auto* const seen = static_cast<float*>(pinned);
            auto queued = team.on(stream);
            for (int turn = 0; turn < 6; ++turn) {
                std::fill_n(seen, count, 1.0F);
                good(
                    cudaMemcpyAsync(data.values().data(), seen, count * sizeof(float), cudaMemcpyHostToDevice, stream));
                if (team.rank() == turn % team.size())
                    good(cudaLaunchHostFunc(
                        stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{3}); }, nullptr));
                good(cudaMemsetAsync(data.values().data(), 0, count * sizeof(float), stream));
                ddl::allreduce(queued, data.values());
                good(
                    cudaMemcpyAsync(seen, data.values().data(), count * sizeof(float), cudaMemcpyDeviceToHost, stream));
                queued.wait();
                require(std::count(seen, seen + count, 0.0F) == count, "a call came before what its stream was given");
            }
            good(cudaFreeHost(pinned));
            good(cudaStreamDestroy(stream));
        },
        ddl::timeout{10});
}

/// Two GPUs that meet, and one rank's body leaves when its grid has not begun: the other's stops at once, and says why.
void a_body_that_leaves_stops_its_peers() {
    if (ddl::require_devices("gpu_double.calls") < 2) return;
    std::optional<ones> data[2];  // which outlive the body: memory can be freed when all grids have ended
    std::atomic<bool> goes_on{false};
    std::string left;
    try {
        ddl::cuda_peer::run(
            2,
            [&](ddl::cuda_peer& team) {
                const auto good = [&](cudaError_t status) {
                    ddl::require_cuda(status, "streams", team.rank(), team.device());
                };
                const std::span<float> values = data[team.rank()].emplace().values();
                cudaStream_t stream = nullptr;
                good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
                auto queued = team.on(stream);
                if (team.rank() == 1)
                    good(cudaLaunchHostFunc(
                        stream,
                        [](void* flag) {
                            while (!*static_cast<std::atomic<bool>*>(flag))
                                std::this_thread::sleep_for(std::chrono::milliseconds{1});
                        },
                        &goes_on));
                const ddl::request sum = ddl::allreduce_async(queued, values);
                ddl::allreduce(queued, values);
                if (team.rank() == 1) throw std::logic_error("of its own");
                team.set_timeout(ddl::timeout{0.2});  // to wait for grids of peers; blocks have been told another
                const ddl::error of_request = error_of([&] { sum.wait(); });
                const ddl::error of_stream = error_of([&] { queued.wait(); });
                goes_on = true;
                require(std::strstr(of_request.what(), "left with an exception") != nullptr, of_request.what());
                require(std::strstr(of_stream.what(), "left with an exception") != nullptr, of_stream.what());
            },
            ddl::timeout{600});
    } catch (const std::logic_error& first) { left = first.what(); }
    require(left == "of its own", "a body's exception is what the run throws");
}

/// Ranks of one GPU of which not all are captured, or each by itself: all are told, and the next call goes well.
void captures_apart() {
    ddl::cuda_peer::run(
        3,
        [](ddl::cuda_peer& team) {
            const auto good = [&](cudaError_t status) {
                ddl::require_cuda(status, "captures", team.rank(), team.device());
            };
            const ones data;
            cudaStream_t stream = nullptr;
            good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            float sum = 1;
            for (const int captures : {1, 3}) {
                const bool is_captured = team.rank() < captures;
                if (is_captured) good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
                require_error(ddl::errc::invalid_argument,
                              "is under another stream capture; pass streams of one capture on all ranks of a GPU",
                              [&] { ddl::allreduce(team.on(stream), data.values()); });
                cudaGraph_t graph = nullptr;
                if (is_captured) good(cudaStreamEndCapture(stream, &graph));
                if (graph != nullptr) good(cudaGraphDestroy(graph));
                ddl::allreduce(team, data.values());
                require(data.last() == (sum *= 3), "a sum afterwards");
            }
            good(cudaStreamDestroy(stream));
        },
        ddl::timeout{10});
}

void devices_that_cannot_take_part() {
    const auto refused = [](const char* words) {
        require_error(ddl::errc::system, words, [] { ddl::cuda_peer::run(2, [](ddl::cuda_peer&) {}); });
    };
    cuda_double::set_abilities(true, false);
    refused("CUDA device 0 runs no cooperative launch");
    cuda_double::set_abilities(false, true);
    if (ddl::require_devices("gpu_double.calls") > 1)
        refused("CUDA device 0 cannot reach the memory of device 1; use ddl::staged");
    else ddl::cuda_peer::run(2, [](ddl::cuda_peer&) {});  // who need not
    cuda_double::set_abilities(true, true);
}

}  // namespace

int main() {
    return on_a_gpu("gpu_double.calls", [] {
        calls_keep_to_their_streams();
        a_body_that_leaves_stops_its_peers();
        captures_apart();
        devices_that_cannot_take_part();
        every_call_may_fail("cuda_peer", peers);
        every_call_may_fail("staged", stages);
    });
}
