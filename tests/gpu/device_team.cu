// SPDX-License-Identifier: Apache-2.0
// One program for Thrust's device systems: CUDA's by nvcc, those of the host by any compiler.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/device_team.cuh>

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/universal_vector.h>

#include <ranges>
#include <span>

#include "../collective/require.hpp"

#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
#include "gpu_test.cuh"
#else
template <class Body>
int on_a_gpu(const char*, Body body) {
    body();
    return 0;
}
#endif

namespace {

using device_ints = thrust::device_vector<int>;

template <class Vector>
void require_values(const Vector& found, const std::vector<int>& wanted, const char* what) {
    std::vector<int> held(found.size());
    thrust::copy(found.begin(), found.end(), held.begin());
    require(held == wanted, what);
}

/// A sum over the ranks of vectors of ones.
std::vector<int> sums(const ddl::device_team& team, std::size_t count) { return std::vector<int>(count, team.size()); }

void every_range_of_a_device_is_taken(ddl::device_team& team) {
    for (const std::size_t count : {0U, 1U, 1000U, 100'003U}) {
        const device_ints in(count, 1);
        device_ints out(count);
        ddl::allreduce(team, in, out);
        require_values(out, sums(team, count), "from one device_vector to another");

        thrust::universal_vector<int> both(count, 1);
        ddl::allreduce(team, both);
        require_values(both, sums(team, count), "a universal_vector, in place");

        device_ints viewed(count, 1);
        ddl::allreduce(team, std::span{thrust::raw_pointer_cast(viewed.data()), viewed.size()});
        require_values(viewed, sums(team, count), "a span of a device_ptr");

#if THRUST_DEVICE_SYSTEM != THRUST_DEVICE_SYSTEM_CUDA
        thrust::host_vector<int> host(count, 1);
        ddl::allreduce(team, host);
        require_values(host, sums(team, count), "a host_vector, for the device is the host");
#endif
    }
}

void policies_are_taken(ddl::device_team& team) {
    device_ints values(1000, 1);
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
    cudaStream_t stream = nullptr;
    ddl::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate", team.rank(), team.device());
    ddl::allreduce(team.on(thrust::cuda::par.on(stream)), values);
    ddl::allreduce(team.on(thrust::cuda::par_nosync.on(stream)), values, ddl::maximum{});
    team.on(stream).wait();
    ddl::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy", team.rank(), team.device());
#else
    ddl::allreduce(team.on(thrust::device), values);
#endif
    auto queued = team.on(thrust::device);
    ddl::allreduce(queued, values, ddl::minimum{});
    queued.wait();
    require_values(values, sums(team, 1000), "a sum, and what it is over every policy");
}

void the_page_on_cuda_is_right() {
    float seen[4] = {};
    //! [device_team]
    ddl::device_team::run(4, [&](ddl::device_team& team) {
        thrust::device_vector<float> values(1000, 1.0F);
        ddl::allreduce(team, values);           // blocks
        auto queued = team.on(thrust::device);  // or, where CUDA is, thrust::cuda::par.on(stream)
        ddl::allreduce(queued, values);
        queued.wait();                  // a GPU has done it now; the host had done it before
        seen[team.rank()] = values[0];  // 16: two sums over four ranks
    });
    //! [device_team]
    for (const float each : seen) require(each == 16.0F, "two sums over four ranks");
}

void many_tensors_go_at_once(ddl::device_team& team) {
    std::vector<device_ints> tensors;
    for (const std::size_t count : {3U, 0U, 20'000U, 7U}) tensors.emplace_back(count, 1);
    ddl::allreduce_n(team, tensors);
    for (const device_ints& each : tensors) require_values(each, sums(team, each.size()), "a tensor of many");
}

void plans_and_calls_for_later(ddl::device_team& team) {
    device_ints values(1000, 1);
    auto plan = ddl::allreduce_init(team, values);
    plan();
    ddl::allreduce_async(team, values, ddl::maximum{}).wait();
    require_values(values, sums(team, 1000), "a sum, and the largest of equals");
    ddl::barrier(team);
}

/// A team carries out what its body leaves behind, a part of it what is left when it goes.
void calls_outlive_the_body() {
    std::vector<device_ints> values(3);
    std::vector<device_ints> in_parts(3);
    std::vector<ddl::request> requests(3);
    ddl::device_team::run(
        3,
        [&](ddl::device_team& team) {
            const auto rank = static_cast<std::size_t>(team.rank());
            values[rank].assign(100'000, 1);
            in_parts[rank].assign(100'000, 1);
            {
                ddl::device_team part = team.split(0, 0);
                for (int turn = 0; turn < 3; ++turn) ddl::allreduce_async(part, in_parts[rank]);
            }
            for (int turn = 0; turn < 3; ++turn) requests[rank] = ddl::allreduce_async(team, values[rank]);
        },
        ddl::timeout{20});
    for (const ddl::request& last : requests) require(last.test(), "the last call has ended");
    for (const std::vector<device_ints>* each : {&values, &in_parts})
        for (const device_ints& sums : *each) require_values(sums, std::vector<int>(100'000, 27), "three sums");
}

void parts_of_a_team(ddl::device_team& team) {
    ddl::device_team part = team.split(team.rank() % 2, -team.rank());
    require(part.size() == (team.size() + 1 - team.rank() % 2) / 2, "ranks of one color");
    device_ints values(10, 1);
    ddl::allreduce(part, values);
    require_values(values, sums(part, 10), "a sum of a part");
}

void mistakes_are_told(ddl::device_team& team) {
    if (team.size() == 1) return;
    device_ints values(10 + static_cast<std::size_t>(team.rank() == 1));
    require_error(ddl::errc::mismatch, "elements, this rank", [&] { ddl::allreduce(team, values); });
    plans_and_calls_for_later(team);  // the communicator is as good as before
}

/// Each collective of ints that lie in a `Vector`, which are handed to it as `view` says. They may only be enqueued when a call
/// returns.
template <class Vector, class View>
void every_collective(ddl::device_team team, View view) {
    const int size = team.size();
    const int last = size - 1;
    // values that say whose they are and where they lie: hundreds the rank, units the place
    const auto numbered = [&](int count) -> Vector {
        std::vector<int> values;
        for (int i = 0; i < count; ++i) values.push_back(100 * team.rank() + i);
        return Vector(values);
    };
    const auto elements = static_cast<std::size_t>(size);
    const auto each_rank = [&](auto value) {
        std::vector<int> values;
        for (int rank = 0; rank < size; ++rank) values.push_back(value(rank));
        return values;
    };
    const auto has = [&](const Vector& found, const std::vector<int>& wanted, const char* what) {
        team.wait();
        require_values(found, wanted, what);
    };
    const auto sum = [&](int i) { return 50 * size * last + size * i; };
    Vector data = numbered(size);
    ddl::allreduce(team, view(data));
    has(data, each_rank(sum), "all sums everywhere");
    data = numbered(size);
    ddl::broadcast(team, view(data), last);
    has(data, each_rank([&](int i) { return 100 * last + i; }), "what the last rank had");

    Vector ours = numbered(size);
    Vector folded(elements);
    ddl::reduce(team, view(ours), view(folded), ddl::sum{}, last);
    team.wait();
    if (team.rank() == last) has(folded, each_rank(sum), "all sums at the root");
    Vector block(1);
    ddl::reduce_scatter(team, view(ours), view(block));
    has(block, {sum(team.rank())}, "a sum each");

    Vector own = numbered(1);
    const auto first_values = each_rank([](int rank) { return 100 * rank; });
    Vector all(elements);
    ddl::all_gather(team, view(own), view(all));
    has(all, first_values, "one of each");
    Vector gathered(elements);
    ddl::gather(team, view(own), view(gathered), last);
    team.wait();
    if (team.rank() == last) has(gathered, first_values, "one of each, at the root");
    ddl::scatter(team, view(ours), view(block), last);
    has(block, {100 * last + team.rank()}, "one for each");
    ddl::all_to_all(team, view(ours), view(all));
    has(all, each_rank([&](int rank) { return 100 * rank + team.rank(); }), "one from each to each");
    ddl::all_to_all_async(team, view(ours), view(gathered)).wait();
    require(gathered == all, "the same, later");
}

/// Vectors, and pairs of pointers, of Thrust's; over the team itself, and over its execution policies.
void every_collective_takes_ranges_and_policies_of_thrust(ddl::device_team& team) {
    const auto itself = [](auto& vector) -> auto& { return vector; };
    every_collective<device_ints>(team, itself);
    every_collective<device_ints>(team.on(thrust::device), itself);
    every_collective<thrust::universal_vector<int>>(team, itself);
#ifndef CUDA_DOUBLE  // whose pointers know no arithmetic
    every_collective<device_ints>(team, [](device_ints& vector) {
        return std::ranges::subrange{vector.data(), vector.data() + static_cast<std::ptrdiff_t>(vector.size())};
    });
#endif
#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
    cudaStream_t stream = nullptr;
    ddl::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate", team.rank(), team.device());
    every_collective<device_ints>(team.on(thrust::cuda::par.on(stream)), itself);
    every_collective<device_ints>(team.on(thrust::cuda::par_nosync.on(stream)), itself);
    ddl::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy", team.rank(), team.device());
#endif
}

void every_case(ddl::device_team& team) {
    every_range_of_a_device_is_taken(team);
    policies_are_taken(team);
    many_tensors_go_at_once(team);
    plans_and_calls_for_later(team);
    parts_of_a_team(team);
    mistakes_are_told(team);
    every_collective_takes_ranges_and_policies_of_thrust(team);
}

}  // namespace

int main() {
    return on_a_gpu("gpu.device_team", [] {
        for (const int ranks : {1, 2, 3, 5})
            ddl::device_team::run(
                ranks, [](ddl::device_team& team) { every_case(team); }, ddl::timeout{20});
        calls_outlive_the_body();
        the_page_on_cuda_is_right();
    });
}
