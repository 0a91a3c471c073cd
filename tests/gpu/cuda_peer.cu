// SPDX-License-Identifier: Apache-2.0
// Every op and every element over virtual ranks of a GPU, against a fold on the host in rank order.
// With -DDDL_TEST_WHOLE_MATRIX every op meets every element that it has a meaning for: that takes a minute or more to compile.
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/transport/cuda_peer.cuh>

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/system/cuda/execution_policy.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
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

/// All ranks of a GPU capture one stream into one graph, which is then launched twice.
void graphs() {
    if (ddl::require_devices("graphs") > 1) {
        std::puts("graphs: left out, for each GPU would need one of its own");
        return;
    }
    cudaStream_t stream = nullptr;
    ddl::require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate", -1, 0);
    run(2, [stream](ddl::cuda_peer& team) {
        thrust::device_vector<int> values(1000, 1);
        cudaGraph_t graph = nullptr;
        ddl::barrier(team);
        if (team.rank() == 0)
            ddl::require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture", 0,
                              0);
        ddl::barrier(team);
        ddl::allreduce(team.on(stream), values);
        ddl::barrier(team);
        if (team.rank() == 0) {
            cudaGraphExec_t runs = nullptr;
            ddl::require_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture", 0, 0);
            ddl::require_cuda(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate", 0, 0);
            for (int turn = 0; turn < 2; ++turn)
                ddl::require_cuda(cudaGraphLaunch(runs, stream), "cudaGraphLaunch", 0, 0);
            ddl::require_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize", 0, 0);
            ddl::require_cuda(cudaGraphExecDestroy(runs), "cudaGraphExecDestroy", 0, 0);
            ddl::require_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy", 0, 0);
        }
        ddl::barrier(team);
        require(values[0] == 4 && values[999] == 4, "two sums of two ranks");
    });
    ddl::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy", -1, 0);
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
                streams(team);
                if (team.size() > 1) mistakes(team);
            });
        graphs();
    });
}
