// SPDX-License-Identifier: Apache-2.0
// Every collective over virtual ranks of a GPU; every op and every element against a fold on the host in rank order.
// With -DDDL_TEST_WHOLE_MATRIX every op meets every element that it has a meaning for: that takes a minute or more to compile.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/cuda_peer.cuh>

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/system/cuda/execution_policy.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <tuple>

#include "../collective/require.hpp"
#include "gpu_test.cuh"

namespace {

/// A hang ends sooner than ctest gives up, so that we hear who waits for whom.
template <class Body>
void run(int ranks, Body body) {
    ddl::cuda_peer::run(ranks, body, ddl::timeout{20});
}

struct first_of_both {  // a user's op that depends on the order of its operands
    template <class Type>
    constexpr Type operator()(const Type& left, const Type&) const {
        return left;
    }
};

template <class Element>
concept has_index = requires(Element element) { element.index; };

/// From -4 to 4, an integer from 0 to 99: the hash of SplitMix64, for a generator for each value would take minutes to seed.
template <class Element>
Element value_of(int rank, std::size_t i, std::uint64_t seed) {
    std::uint64_t x = (seed * 1'000'003 + i * 131 + static_cast<std::size_t>(rank)) * 0x9e37'79b9'7f4a'7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebULL;
    x ^= x >> 31;
    const double value = static_cast<double>(x >> 11) / 1'125'899'906'842'624.0 - 4;
    if constexpr (has_index<Element>) return {static_cast<decltype(Element{}.value)>(value), rank};
    else if constexpr (std::is_integral_v<Element>) return static_cast<Element>(x % 100);
    else return static_cast<Element>(static_cast<float>(value));
}

template <class Op, class Element>
void check(ddl::cuda_peer& team, std::size_t count, std::size_t offset, std::uint64_t seed) {
    using ours = typename ddl::alias_of<Element>::type;
    using accumulator = ddl::accumulator_t<Op, ours>;
    const Op op{};
    thrust::host_vector<Element> mine(count + offset);
    std::vector<ours> wanted(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = [&](int rank) { return value_of<ours>(rank, i, seed); };
        accumulator sum = static_cast<accumulator>(value(0));
        for (int rank = 1; rank < team.size(); ++rank) sum = op(sum, static_cast<accumulator>(value(rank)));
        wanted[i] = static_cast<ours>(ddl::finish(op, sum, team.size()));
        mine[offset + i] = std::bit_cast<Element>(value(team.rank()));
    }
    thrust::device_vector<Element> in = mine;
    thrust::device_vector<Element> out(count + offset);
    const auto part = [&](auto& vector) {
        return std::span<Element>{thrust::raw_pointer_cast(vector.data()) + offset, count};
    };
    const auto same = [&](const thrust::device_vector<Element>& got) {
        const thrust::host_vector<Element> here = got;
        if constexpr (has_index<Element>)  // not its bits: there is padding
            return std::equal(wanted.begin(), wanted.end(), here.begin() + static_cast<std::ptrdiff_t>(offset));
        else return count == 0 || std::memcmp(here.data() + offset, wanted.data(), count * sizeof(Element)) == 0;
    };
    ddl::allreduce<ddl::direct>(team, part(in), part(out), op);
    require(same(out), "beside: other bits than on the host");
    ddl::allreduce(team, part(in), op);
    require(same(in), "in place: other bits than on the host");
}

template <class Op, class Element>
void sweep(ddl::cuda_peer& team) {
    if (team.rank() == 0)
        std::fprintf(stderr, "%s of %s, %d ranks\n", ddl::op_name<Op>(),
                     ddl::element_name<typename ddl::alias_of<Element>::type>(), team.size());
    std::uint64_t seed = 0;
    for (const std::size_t count : {0, 1, 3, 127, 4096, 16'385, 300'001})
        for (const std::size_t offset : {0, 1}) check<Op, Element>(team, count, offset, ++seed);
}

template <class Op, class... Elements>
void sweep_op(ddl::cuda_peer& team, std::tuple<Elements...>) {
    const auto if_it_means_something = [&]<class Element>() {
        if constexpr (ddl::combines<Op, typename ddl::alias_of<Element>::type>) sweep<Op, Element>(team);
    };
    (if_it_means_something.template operator()<Elements>(), ...);
}

using elements = std::tuple<float, double, std::int8_t, std::int64_t, ddl::half, ddl::bfloat16, ddl::float8_e4m3,
                            ddl::float8_e5m2, __half, __nv_bfloat16, ddl::located<float>>;

void matrix(ddl::cuda_peer& team) {
#ifdef DDL_TEST_WHOLE_MATRIX
    const auto each_op = [&]<class... Ops>(std::tuple<Ops...>) { (sweep_op<Ops>(team, elements{}), ...); };
    each_op(std::tuple<ddl::sum, ddl::product, ddl::minimum, ddl::maximum, ddl::average, ddl::bit_and, ddl::bit_or,
                       ddl::bit_xor, ddl::logical_and, ddl::logical_or, ddl::logical_xor, ddl::minimum_location,
                       ddl::maximum_location, first_of_both>{});
#else
    sweep_op<ddl::sum>(team, std::tuple<float, double, std::int8_t, ddl::float8_e4m3, __half>{});
    sweep<ddl::average, ddl::bfloat16>(team);
    sweep<ddl::maximum, ddl::float8_e5m2>(team);
    sweep<ddl::bit_xor, std::int64_t>(team);
    sweep<ddl::minimum_location, ddl::located<float>>(team);
    sweep<first_of_both, std::int32_t>(team);
#endif
}

/// A vector on the device, element `i` being `value(i)`.
template <class Element, class Value>
thrust::device_vector<Element> filled(std::size_t count, Value value) {
    thrust::host_vector<Element> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<Element>(value(i));
    return values;
}
template <class Element, class Value>
void require_filled(const thrust::device_vector<Element>& got, Value value, const char* otherwise) {
    const thrust::host_vector<Element> here = got;
    for (std::size_t i = 0; i < here.size(); ++i) require(here[i] == static_cast<Element>(value(i)), otherwise);
}

/// What is not folded into all outputs. Small whole numbers: sums are exact.
template <class Element>
void others(ddl::cuda_peer& team) {
    const int rank = team.rank();
    const int size = team.size();
    const auto ranks = static_cast<std::size_t>(size);
    const auto value = [](int of, std::size_t i) { return (of * 7 + static_cast<int>(i % 11)) % 13; };
    const auto sum = [&](std::size_t i) {
        int all = 0;
        for (int of = 0; of < size; ++of) all += value(of, i);
        return all;
    };
    const auto ours = [&](std::size_t i) { return value(rank, i); };
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, ranks * 64, std::size_t{300'001}}) {
        const auto own = ddl::block(count, size, rank);
        const int root = size / 2;
        const bool is_root = rank == root;
        const auto vector = filled<Element>(count, ours);
        thrust::device_vector<Element> whole(count);
        thrust::device_vector<Element> part(own.count);

        ddl::reduce(team, vector, whole, ddl::sum{}, root);
        if (is_root) require_filled(whole, sum, "reduce");
        ddl::reduce_scatter(team, vector, part);
        require_filled(
            part, [&](std::size_t i) { return sum(own.first + i); }, "reduce_scatter");
        ddl::all_gather(team, part, whole);
        require_filled(whole, sum, "all_gather");
        whole = vector;
        ddl::broadcast(team, whole, root);
        require_filled(
            whole, [&](std::size_t i) { return value(root, i); }, "broadcast");

        thrust::device_vector<Element> all(is_root ? count * ranks : 0);
        ddl::gather(team, vector, all, root);
        require_filled(
            all, [&](std::size_t i) { return value(static_cast<int>(i / count), i % count); }, "gather");
        thrust::device_vector<Element> back(count);
        ddl::scatter(team, all, back, root);
        require_filled(back, ours, "scatter");

        auto pairs = filled<Element>(count * ranks, ours);
        thrust::device_vector<Element> exchanged(count * ranks);
        const auto from_all = [&](std::size_t i) {
            return value(static_cast<int>(i / count), static_cast<std::size_t>(rank) * count + i % count);
        };
        ddl::all_to_all(team, pairs, exchanged);
        require_filled(exchanged, from_all, "all_to_all");
        ddl::all_to_all(team, pairs);
        require_filled(pairs, from_all, "all_to_all in place");
    }
}

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
    std::atomic<bool> goes_on{false};
    const bool captures = team.rank() == 0;
    ddl::barrier(team);  // until when nobody frees memory, which would wait for the stream that is held up
    if (captures)
        good(cudaLaunchHostFunc(
            stream, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); }, &goes_on));
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
        goes_on = true;
        goes_on.notify_all();
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
    run(2, [&](ddl::cuda_peer& team) {
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
    bool refused = false;
    try {
        ddl::allreduce(team, host);
    } catch (const ddl::error& failure) {
        refused = failure.code() == ddl::errc::invalid_argument || failure.code() == ddl::errc::mismatch;
    }
    require(refused, "host memory is refused");
    thrust::device_vector<float> data(10 + static_cast<std::size_t>(team.rank() == 1));
    refused = false;
    try {
        ddl::allreduce(team, data);
    } catch (const ddl::error& failure) { refused = failure.code() == ddl::errc::mismatch; }
    require(refused, "unlike counts are refused");
    thrust::device_vector<float> ones(10, 1.0F);
    ddl::allreduce(team, ones);
    require(ones[9] == static_cast<float>(team.size()), "the communicator is as good as before");
}

}  // namespace

int main() {
    return on_a_gpu("gpu.cuda_peer", [] {
        for (const int ranks : {1, 2, 4, 5})
            run(ranks, [](ddl::cuda_peer& team) {
                matrix(team);
                others<float>(team);
                tensors<float>(team);
                tensors<__half>(team);
                streams(team);
                requests(team);
                a_capture_beside_a_request(team);
                if (team.size() > 1) mistakes(team);
            });
        graphs();
    });
}
