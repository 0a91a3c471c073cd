// SPDX-License-Identifier: Apache-2.0
// Every collective over virtual ranks of a GPU, and some ops and elements, against a fold on the host in rank order; all of them
// are in matrix_*.cu. With --fault: what a program is told whose own kernel fails; that ends all work on the GPU, so it is
// a run of its own.
#include <ddl/barrier.hpp>

#include <thrust/system/cuda/execution_policy.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "created_memory.cuh"
#include "peer_checks.cuh"

namespace {

#ifdef CUDA_DOUBLE  // on host threads: few of all
constexpr int numbers_of_ranks[] = {1, 3};
void matrix(ddl::cuda_peer& team) {
    sweep<ddl::sum, __half>(team);
    sweep<ddl::bit_xor, std::byte>(team);
}
#else
constexpr int numbers_of_ranks[] = {1, 2, 4, 5};
void matrix(ddl::cuda_peer& team) {
    sweep_op<ddl::sum>(team, std::tuple<float, double, std::int8_t, ddl::float8_e4m3, __half>{});
    sweep<ddl::average, ddl::bfloat16>(team);
    sweep<ddl::maximum, ddl::float8_e5m2>(team);
    sweep<ddl::bit_xor, std::int64_t>(team);
    sweep<ddl::minimum_location, ddl::located<float>>(team);
    sweep<first_of_both, std::int32_t>(team);
}
#endif

/// Tensors of many lengths, on 16 bytes and off them, in few launches: the bits of a call for each.
template <class Element>
void tensors(ddl::cuda_peer& team) {
    for (const std::size_t number : {0, 1, 161, 1100}) {
        const auto length = [](std::size_t t) { return t % 7 == 3 ? 0 : t % 40 == 1 ? 70'001 : t * t % 301; };
        const auto gap = [](std::size_t t) { return t % 5; };
        std::size_t count = 0;
        for (std::size_t t = 0; t < number; ++t) count += length(t) + gap(t);
        thrust::device_vector<Element> together =
            filled<Element>(count, [&](std::size_t i) { return value_of<float>(team.rank(), i, number); });
        thrust::device_vector<Element> alone = together;
        std::vector<std::span<Element>> views;
        std::size_t at = 0;
        for (std::size_t t = 0; t < number; ++t) {
            at += gap(t);
            views.emplace_back(thrust::raw_pointer_cast(together.data()) + at, length(t));
            ddl::allreduce(team, std::span{thrust::raw_pointer_cast(alone.data()) + at, length(t)});
            at += length(t);
        }
        ddl::allreduce_n(team, views);
        const thrust::host_vector<Element> left = together;
        const thrust::host_vector<Element> right = alone;
        require(count == 0 || std::memcmp(left.data(), right.data(), count * sizeof(Element)) == 0,
                "tensors have other bits than a call for each");
    }
}

/// Requests are done when their streams have come past them; calls are enqueued meanwhile.
void requests(ddl::cuda_peer& team) {
    cudaStream_t stream = nullptr;
    ddl::require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate", team.rank(), 0);
    auto queued = team.on(stream);
    thrust::device_vector<int> values(100'000, 1);
    std::vector<ddl::request> all;
    for (int turn = 0; turn < 3; ++turn) all.push_back(ddl::allreduce_async(queued, values));
    for (const ddl::request& each : all) each.wait();
    const int once = team.size();
    require(values[99'999] == once * once * once, "three sums");
    auto of_thread = team.on(cudaStreamPerThread);
    ddl::require_cuda(cudaMemsetAsync(thrust::raw_pointer_cast(values.data()), 0, 4, cudaStreamPerThread),
                      "cudaMemsetAsync", team.rank(), 0);
    ddl::allreduce_async(of_thread, values).wait();
    require(values[0] == 0, "what this thread has put on its own stream comes before");
    ddl::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy", team.rank(), 0);
}

/// Keeps a stream from going on, until told or for some seconds: under a tool that runs one launch after the other nobody else
/// would come to say so.
class held_stream {
public:
    held_stream() = default;
    held_stream(const held_stream&) = delete;
    held_stream& operator=(const held_stream&) = delete;
    ~held_stream() {
        release();
        static_cast<void>(cudaDeviceSynchronize());  // the stream looks at this no more
    }
    void hold(cudaStream_t stream) {
        ddl::require_cuda(cudaLaunchHostFunc(
                              stream, [](void* held) { static_cast<held_stream*>(held)->wait(); }, this),
                          "cudaLaunchHostFunc", -1, 0);
    }
    void release() { goes_on_ = true; }

private:
    void wait() const {
        for (int i = 0; i < 3000 && !goes_on_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    std::atomic<bool> goes_on_{false};
};

/// A call over a stream that is held up returns, and its request is pending; the stream has come past it when it goes on.
void a_call_is_enqueued_and_returns(ddl::cuda_peer& team) {
    cudaStream_t stream = nullptr;
    const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "enqueue", team.rank(), team.device()); };
    good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    thrust::device_vector<int> values(1000, 1);
    auto queued = team.on(thrust::cuda::par.on(stream));
    ddl::allreduce(queued, values);
    queued.wait();  // the kernel is loaded now, for which a GPU may wait until its streams are idle
    held_stream held;
    ddl::barrier(team);  // until when nobody frees memory, which would wait for the stream that is held up
    if (team.rank() == 0) held.hold(stream);
    ddl::allreduce(queued, values);
    const ddl::request sum = ddl::allreduce_async(queued, values);
    ddl::barrier(team);  // all have enqueued theirs
    const cudaError_t state = cudaStreamQuery(stream);
    static_cast<void>(cudaGetLastError());
    const bool pending = !sum.test();
    ddl::barrier(team);  // all have looked
    held.release();
    sum.wait();
    queued.wait();
    good(cudaStreamQuery(stream));
    const int size = team.size();
    require(values[999] == size * size * size, "three sums");
    static const bool launches_wait = std::getenv("DDL_TEST_LAUNCHES_WAIT") != nullptr;  // under a tool
    require(launches_wait || (state == cudaErrorNotReady && pending),
            "the stream was through with calls that it had not come to");
    good(cudaStreamDestroy(stream));
}

/// The stream of a thread is another one for the thread that carries out the call.
void a_wait_is_for_calls_of_another_thread(ddl::cuda_peer& team) {
    const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "wait", team.rank(), team.device()); };
    cudaStream_t other = nullptr;
    good(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    thrust::device_vector<int> values(1000, 1);
    auto queued = team.on(cudaStreamPerThread);
    ddl::allreduce_async(queued, values).wait();  // the kernel is loaded now, and the thread there
    good(cudaDeviceSynchronize());
    held_stream held;
    ddl::barrier(team);
    if (team.rank() > 0) held.hold(cudaStreamPerThread);
    const ddl::request sum = ddl::allreduce_async(queued, values);
    std::this_thread::sleep_for(std::chrono::milliseconds{10});  // it takes the call before somebody waits for it
    ddl::barrier(team);                                          // all have enqueued theirs
    if (team.rank() > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
        held.release();
    }
    queued.wait();
    int last = 0;
    good(cudaMemcpyAsync(&last, thrust::raw_pointer_cast(values.data()) + 999, sizeof last, cudaMemcpyDefault, other));
    good(cudaStreamSynchronize(other));
    require(last == team.size() * team.size(), "a wait returned before the call had ended");
    sum.wait();
    good(cudaStreamDestroy(other));
}

/// A team and a part of it call at the same time, on streams of their own: their grids wait for each other nowhere.
void a_team_and_its_part_at_once(ddl::cuda_peer& team) {
    cudaStream_t streams[2] = {};
    const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "streams", team.rank(), team.device()); };
    for (cudaStream_t& each : streams) good(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking));
    ddl::cuda_peer part = team.split(team.rank() % 2, 0);
    thrust::device_vector<int> of_all(300'000, 1);
    thrust::device_vector<int> of_part(300'000, 1);
    int all = 1;
    int ours = 1;
    for (int turn = 0; turn < 5; ++turn) {
        ddl::allreduce(team.on(streams[0]), of_all);
        ddl::allreduce(part.on(streams[1]), of_part);
        all *= team.size();
        ours *= part.size();
    }
    team.on(streams[0]).wait();
    part.on(streams[1]).wait();
    require(of_all[299'999] == all && of_part[299'999] == ours, "five sums of all, five of a part");
    for (const cudaStream_t each : streams) good(cudaStreamDestroy(each));
}

/// The blocks of as many ranks as there can be run at once, or the ranks are told that they are too many for this GPU.
void as_many_ranks_as_there_can_be() {
    constexpr int ranks = ddl::grid_window::most_ranks;
    const ddl::error failure = error_of([] {
        run_peers(ranks, [](ddl::cuda_peer& team) {
            for (const std::size_t count : {7, 70'001}) {
                thrust::device_vector<float> values(count, 1.0F);
                ddl::allreduce(team, values);
                require(values[0] == ranks && values[count - 1] == ranks, "a sum of many ranks");
            }
        });
    });
    if (failure.code() == no_error) return;
    require(std::strstr(failure.what(), "blocks at once; ask for fewer ranks") != nullptr, failure.what());
    std::puts(failure.what());
}

/// Sums of random values have the same bits, whatever the grid.
template <class Body, class Element>
void same_bits_for_any_grid(ddl::cuda_peer& team, std::size_t count) {
    const auto value = [&](std::size_t i) { return value_of<float>(team.rank(), i, count); };
    const thrust::device_vector<Element> in = filled<Element>(count, value);
    thrust::device_vector<Element> chosen(count);
    ddl::allreduce(team, in, chosen);
    const thrust::host_vector<Element> wanted = chosen;
    constexpr int threads = ddl::grid_limits_of<ddl::cuda_peer>.threads;
    for (int blocks = 1; blocks <= std::min(5, team.most_blocks_of<Body>()); ++blocks)
        for (const int each : {threads, (threads + 1) / 2}) {
            thrust::device_vector<Element> out(count);
            ddl::call_grids<ddl::checked, Element>(
                team, ddl::describe<ddl::sum, Element, ddl::direct>(ddl::collective::allreduce, count, 0),
                thrust::raw_pointer_cast(in.data()), count, thrust::raw_pointer_cast(out.data()), count,
                [&](auto& here, const ddl::grid_ranks<Element>& places) {
                    here.launch(Body{places, count, {}}, {blocks, each});
                });
            const thrust::host_vector<Element> got = out;
            require(std::memcmp(got.data(), wanted.data(), count * sizeof(Element)) == 0,
                    "other bits for another grid");
        }
}

/// A request that is pending leaves the captures of others alone, in the mode that forbids most, too.
void a_capture_beside_a_request(ddl::cuda_peer& team) {
    cudaStream_t stream = nullptr;
    cudaStream_t captured = nullptr;
    const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "capture", team.rank(), team.device()); };
    good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    good(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    thrust::device_vector<int> values(1000, 1);
    thrust::device_vector<int> other(1);
    auto queued = team.on(stream);
    held_stream held;
    const bool captures = team.rank() == 0;
    ddl::barrier(team);  // until when nobody frees memory, which would wait for the stream that is held up
    if (captures) held.hold(stream);
    const ddl::request pending = ddl::allreduce_async(queued, values);
    ddl::barrier(team);  // until when all have enqueued theirs
    cudaError_t ended = cudaSuccess;
    if (captures) {
        cudaGraph_t graph = nullptr;
        ended = cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal);
        if (ended == cudaSuccess)
            ended = cudaMemsetAsync(thrust::raw_pointer_cast(other.data()), 0, sizeof(int), captured);
        std::this_thread::sleep_for(std::chrono::milliseconds{20});  // a thousand looks at the request
        const cudaError_t kept = cudaStreamEndCapture(captured, &graph);
        if (ended == cudaSuccess) ended = kept;
        if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
        held.release();
    }
    ddl::barrier(team);  // until when the others call nothing that a capture forbids
    pending.wait();
    good(ended);
    require(values[999] == team.size(), "a sum");
    good(cudaStreamDestroy(captured));
    good(cudaStreamDestroy(stream));
}

/// Calls on streams follow each other, and a graph runs them again.
void streams(ddl::cuda_peer& team) {
    cudaStream_t stream = nullptr;
    ddl::require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate", team.rank(), 0);
    auto queued = team.on(stream);
    thrust::device_vector<int> values(1000, 1);
    for (int turn = 0; turn < 3; ++turn) ddl::allreduce(queued, values);
    queued.wait();
    const int once = team.size();
    require(values[999] == once * once * once, "three sums");
    ddl::allreduce(team.on(thrust::cuda::par.on(stream)), values, ddl::maximum{});
    team.on(stream).wait();
    ddl::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy", team.rank(), 0);
}

/// Two ranks of a GPU capture a call each way into one graph, on two streams, which is then launched twice.
void graphs() {
    if (ddl::require_devices("graphs") > 1) {
        std::puts("graphs: left out, for each GPU would need one of its own");
        return;
    }
    cudaStream_t streams[2] = {};
    cudaEvent_t fork = nullptr;
    cudaEvent_t join = nullptr;
    const auto good = [](cudaError_t status) { ddl::require_cuda(status, "graphs", -1, 0); };
    for (cudaStream_t& each : streams) good(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking));
    good(cudaEventCreate(&fork));
    good(cudaEventCreate(&join));
    run_peers(2, [&](ddl::cuda_peer& team) {
        thrust::device_vector<int> values(1000, 1);
        auto queued = team.on(streams[team.rank()]);
        cudaGraph_t graph = nullptr;
        ddl::barrier(team);
        if (team.rank() == 0) {
            good(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed));
            good(cudaEventRecord(fork, streams[0]));
            good(cudaStreamWaitEvent(streams[1], fork, 0));
        }
        ddl::barrier(team);
        ddl::allreduce(queued, values);
        const std::span<int> all{thrust::raw_pointer_cast(values.data()), values.size()};
        ddl::allreduce_n(queued, std::vector<std::span<int>>{all.first(1), all.subspan(1)});
        ddl::barrier(team);
        if (team.rank() == 0) {
            cudaGraphExec_t runs = nullptr;
            good(cudaEventRecord(join, streams[1]));
            good(cudaStreamWaitEvent(streams[0], join, 0));
            good(cudaStreamEndCapture(streams[0], &graph));
            good(cudaGraphInstantiate(&runs, graph, 0));
            for (int turn = 0; turn < 2; ++turn) good(cudaGraphLaunch(runs, streams[0]));
            good(cudaStreamSynchronize(streams[0]));
            good(cudaGraphExecDestroy(runs));
            good(cudaGraphDestroy(graph));
        }
        ddl::barrier(team);
        require(values[0] == 16 && values[999] == 16, "four sums of two ranks");
        ddl::allreduce(queued, values);
        queued.wait();
        require(values[999] == 32, "and one outside of the graph");
    });
    good(cudaEventDestroy(join));
    good(cudaEventDestroy(fork));
    for (const cudaStream_t each : streams) good(cudaStreamDestroy(each));
}

void mistakes(ddl::cuda_peer& team) {
    std::vector<float> host(10);
    thrust::device_vector<float> ones(10, 1.0F);
    const std::string device = std::to_string(team.device());
    const auto refused = [&](const char* which, auto call) {  // by rank 1, and the others are told
        if (team.rank() == 1)
            require_error(ddl::errc::invalid_argument,
                          std::string{"rank 1: "} + which + " is host memory; pass memory of CUDA device " + device +
                              ", or call over ddl::threads",
                          call);
        else require_error(ddl::errc::mismatch, "rank 1 has called with invalid arguments; see its own error", call);
    };
    const std::span<float> anywhere{team.rank() == 1 ? host.data() : thrust::raw_pointer_cast(ones.data()), 10};
    refused("in", [&] { ddl::allreduce(team, anywhere); });
    refused("out", [&] { ddl::allreduce(team, ones, anywhere); });
    const std::span<float> here{thrust::raw_pointer_cast(ones.data()), 10};
    refused("a tensor", [&] { ddl::allreduce_n(team, std::vector{here.first(1), anywhere}); });
    thrust::device_vector<float> data(10 + static_cast<std::size_t>(team.rank() == 1));
    require_error(ddl::errc::mismatch, "elements, this rank", [&] { ddl::allreduce(team, data); });
    ddl::allreduce(team, ones);
    require(ones[9] == static_cast<float>(team.size()), "the communicator is as good as before");
}

/// Memory of another GPU, and memory that the other GPUs may not reach.
void memory_elsewhere(ddl::cuda_peer& team) {
    const int devices = ddl::require_devices("memory_elsewhere");
    if (devices < 2 || team.size() < 2) return;
    const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "memory", team.rank(), team.device()); };
    const auto refused = [&](const char* words, float* place) {
        require_error(ddl::errc::invalid_argument, words, [&] { ddl::allreduce(team, std::span{place, 100}); });
    };
    float* data = nullptr;
    {
        const ddl::device_scope there{(team.device() + 1) % devices, team.rank()};
        good(cudaMalloc(&data, 400));
        refused("pass memory of the rank's device", data);
        good(cudaFree(data));
    }
    const created_memory created{team.device(), 400};
    refused("grant it by cuMemSetAccess, or pass memory of cudaMalloc", created.data());
    good(cudaMallocAsync(&data, 400, nullptr));
    refused("grant it by cudaMemPoolSetAccess, or pass memory of cudaMalloc", data);
    good(cudaFreeAsync(data, nullptr));
}

__global__ void store_to(int* place) { *place = 1; }

/// A kernel of the caller's fails when the call behind it has been enqueued: `wait` tells of it, on all ranks.
void a_fault_is_told() {
    run_peers(2, [](ddl::cuda_peer& team) {
        const auto good = [&](cudaError_t status) { ddl::require_cuda(status, "fault", team.rank(), team.device()); };
        cudaStream_t stream = nullptr;
        int* data = nullptr;  // which nobody frees, for nothing can be freed then
        good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        good(cudaMalloc(&data, 1000 * sizeof(int)));
        good(cudaMemset(data, 0, 1000 * sizeof(int)));
        good(cudaDeviceSynchronize());
        const std::span<int> values{data, 1000};
        auto queued = team.on(stream);
        const auto store_one_to = [&](int* place) {
            void* arguments[] = {&place};
            good(cudaLaunchKernel(ddl::launchable(&store_to), dim3{1}, dim3{1}, arguments, 0, stream));
        };
        store_one_to(data);
        ddl::allreduce(queued, values);
        queued.wait();  // both kernels are loaded now, for which a GPU may wait until its streams are idle
        held_stream held;
        if (team.rank() == 0) {
            held.hold(stream);
            store_one_to(nullptr);
        }
        ddl::allreduce(queued, values);
        ddl::barrier(team);
        held.release();
        require_error(ddl::errc::system, "cudaErrorIllegalAddress", [&] { queued.wait(); });
        require(error_of([&] { ddl::allreduce(team, values); }).code() != no_error, "and nothing runs there any more");
    });
}

}  // namespace

int main(int count, char** words) {
    if (count > 1 && std::string_view{words[1]} == "--fault") return on_a_gpu("gpu.fault", a_fault_is_told);
    return on_a_gpu("gpu.cuda_peer", [] {
        for (const int ranks : numbers_of_ranks)
            run_peers(ranks, [](ddl::cuda_peer& team) {
                matrix(team);
                others<float>(team);
                tensors<float>(team);
                tensors<__half>(team);
                streams(team);
                requests(team);
                a_capture_beside_a_request(team);
                a_call_is_enqueued_and_returns(team);
                a_wait_is_for_calls_of_another_thread(team);
                a_team_and_its_part_at_once(team);
                same_bits_for_any_grid<ddl::grid_one_shot<ddl::sum, float>, float>(team, 301);
                same_bits_for_any_grid<ddl::grid_two_shot<ddl::sum, float>, float>(team, 40'001);
                same_bits_for_any_grid<ddl::grid_two_shot<ddl::sum, ddl::bfloat16>, ddl::bfloat16>(team, 40'001);
                if (team.size() > 1) mistakes(team);
                memory_elsewhere(team);
            });
        graphs();
        as_many_ranks_as_there_can_be();
    });
}
