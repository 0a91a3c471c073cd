// SPDX-License-Identifier: Apache-2.0
// What an allreduce over virtual ranks of one GPU takes, beside what the GPU can do. Built and run by benchmarks/gpu/run.
// gpu_bench [HEADER]: the smallest grids within 3 % of the quickest go into that file, as a program includes them.
#include <ddl/transport/staged.cuh>
#include <ddl/transport/threads.hpp>

#include <cub/device/device_transform.cuh>
#include <cuda/std/tuple>
#include <thrust/functional.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform.h>

#include <map>
#include <random>

#include "../compare/tensors.hpp"
#include "grid_header.hpp"
#include "problem.cuh"
#include "report.cuh"

namespace {

/// Meets and does nothing: the least that ranks which wait for each other can take.
template <class Element>
struct empty_barrier {
    ddl::grid_ranks<Element> ranks;
    template <ddl::execution_space Space>
    constexpr void operator()(Space& space) const {
        std::uint64_t* const count = ranks.window(space.rank()).meetings(space.block());
        const std::uint64_t meeting = space.load_relaxed(count) + 1;
        if (ddl::meet(space, ranks, meeting) && space.thread() == 0) space.store_relaxed(count, meeting);
    }
};

constexpr double seconds_in_all = 170;
constexpr int rows = 11;
constexpr std::size_t kibi = 1024;
constexpr std::size_t mebi = kibi * kibi;

std::uint64_t fresh_seed() {
    static std::uint64_t seed = std::random_device{}();
    return ++seed;
}

/// Gigabytes a second that an add of CUB's moves, of so many bytes in all: memory as an allreduce moves it, without ranks.
struct add_rates {
    double plain;
    double graph;
};
add_rates add_rate(std::size_t bytes, cudaStream_t stream) {
    const std::size_t count = bytes / 3 / sizeof(float);
    const std::uint64_t seed = fresh_seed();
    const device_memory memory[] = {device_memory{count * sizeof(float)}, device_memory{count * sizeof(float)},
                                    device_memory{count * sizeof(float)}};
    float* const sums = memory[2].as<float>();
    for (int rank = 0; rank < 2; ++rank) fill_with_random_values(memory[rank].as<float>(), count, seed, rank);
    require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto add = [&] {
        require_success(
            cub::DeviceTransform::Transform(cuda::std::make_tuple(memory[0].as<float>(), memory[1].as<float>()), sums,
                                            count, thrust::plus<float>{}, stream),
            "cub::DeviceTransform");
    };
    const auto rate = [&](double time) { return 3e-3 * static_cast<double>(count * sizeof(float)) / time; };
    const double plain = rate(microseconds_each(stream, rows, 5, add));
    const double graph = rate(microseconds_in_a_graph(stream, rows, 5, add));
    require_sums(sums, count, seed, 2, "CUB's add");
    return {plain, graph};
}

/// The straightforward form: all inputs copied side by side, added, and the sum copied to all outputs.
double straightforward(problem<float>& ranks, std::size_t count, cudaStream_t stream, int each) {
    const int size = ranks.places.size;
    const auto policy = thrust::cuda::par_nosync.on(stream);  // else every sum waits for the GPU
    const device_memory side_by_side{count * sizeof(float) * static_cast<std::size_t>(size)};
    const auto part = [&](int rank) { return side_by_side.as<float>() + static_cast<std::size_t>(rank) * count; };
    const auto form = [&] {
        const auto copy = [&](float* to, const float* from) {
            require_success(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream),
                            "cudaMemcpyAsync");
        };
        for (int rank = 0; rank < size; ++rank) copy(part(rank), ranks.places.in[rank]);
        for (int rank = 1; rank < size; ++rank)
            thrust::transform(policy, part(0), part(0) + count, part(rank), part(0), thrust::plus<float>{});
        for (int rank = 0; rank < size; ++rank) copy(ranks.places.out[rank], part(0));
    };
    ranks.check("the straightforward form", form);
    return microseconds_each(stream, rows, each, form);
}

/// Of grids that were timed for several elements: how many times as long as the quickest each takes, at the worst.
using slowness_of_grids = std::map<int, double>;

template <class Element>
void long_vectors(report& out, int size, std::size_t bytes, const add_rates& limit, cudaStream_t stream,
                  slowness_of_grids& slowness) {
    const std::size_t count = bytes / sizeof(Element);
    problem<Element> ranks{size, count, fresh_seed()};
    using body = ddl::grid_two_shot<ddl::sum, Element>;
    const body fused{ranks.places, count, {}};
    const ddl::grid_shape widest =
        ddl::two_shot_shape<Element>(count, size, ranks.template most_blocks<body>(), ddl::longest_device_block);
    std::map<int, double> times;
    for (int blocks = widest.blocks; blocks >= 1 && times.size() < 5; blocks /= 2) {
        const auto shot = [&] { ranks.launch(fused, {blocks, widest.threads}, stream); };
        const std::string what = "two-shot of " + std::to_string(blocks) + " blocks";
        ranks.check(what, shot);
        ranks.wipe();
        times[blocks] = microseconds_each(stream, rows, 3, shot);
        ranks.require_sums(what + ", again and again");
    }
    const auto quickest =
        std::min_element(times.begin(), times.end(), [](auto& l, auto& r) { return l.second < r.second; });
    const double best = quickest->second;
    int smallest = quickest->first;
    for (const auto& [blocks, time] : times) {
        slowness[blocks] = std::max(slowness[blocks], time / best);
        if (time <= 1.03 * best) smallest = std::min(smallest, blocks);
    }
    ranks.wipe();
    const double graph = microseconds_in_a_graph(stream, rows, 3, [&] {
        ranks.launch(fused, {quickest->first, widest.threads}, stream);
    });
    ranks.require_sums("two-shot in a graph");
    const double moved = 2e-3 * size * static_cast<double>(bytes);
    out.row(
        "two-shot %-12s p=%d %8zu KiB a rank  plain %10.1f us %5.0f GB/s, %5.1f %% of an add's %5.0f   graph %10.1f "
        "us, %5.1f %% of %5.0f; blocks %d of %d",
        ddl::element_name<Element>(), size, bytes / kibi, best, moved / best, 100 * moved / best / limit.plain,
        limit.plain, graph, 100 * moved / graph / limit.graph, limit.graph, smallest, widest.blocks);
    if constexpr (std::is_same_v<Element, float>) {
        const double copied = straightforward(ranks, count, stream, 1);
        out.row("         the straightforward form takes %.1f us, %.1f times as long", copied, copied / best);
    }
}

void short_vectors(report& out, int size, std::size_t bytes, cudaStream_t stream) {
    const std::size_t count = bytes / sizeof(float);
    problem<float> ranks{size, count, fresh_seed()};
    using body = ddl::grid_one_shot<ddl::sum, float>;
    const int blocks = ranks.most_blocks<body>();
    if (bytes > ddl::grid_limits{}.longest_one_shot(size)) return;  // no program has it
    if (count > body::most(std::min(blocks, ddl::grid_window::inbox_blocks(size)))) {
        out.row("one-shot p=%d %6zu B  left out: more than the inboxes of %d blocks hold", size, bytes, blocks);
        return;
    }
    const auto shape = ddl::one_shot_shape<body>(count, size, blocks, ddl::longest_device_block);
    const auto shot = [&] { ranks.launch(body{ranks.places, count, {}}, shape, stream); };
    const auto barrier = [&] { ranks.launch(empty_barrier<float>{ranks.places}, shape, stream); };
    ranks.check("one-shot", shot);
    ranks.refill(fresh_seed());  // what is left in the inboxes is none of these sums
    ranks.check("one-shot of other inputs", shot);
    ranks.wipe();
    const double plain = microseconds_each(stream, rows, 100, shot);
    ranks.require_sums("one-shot, again and again");
    ranks.wipe();
    const double graph = microseconds_in_a_graph(stream, rows, 100, shot);
    ranks.require_sums("one-shot in a graph");
    const double plain_barrier = microseconds_each(stream, rows, 100, barrier);
    const double graph_barrier = microseconds_in_a_graph(stream, rows, 100, barrier);
    const double copied = straightforward(ranks, count, stream, 20);
    out.row(
        "one-shot p=%d %6zu B  plain %6.2f us, barrier %6.2f: %+5.2f   graph %6.2f us, barrier %6.2f: %+5.2f   "
        "straightforward %7.2f us",
        size, bytes, plain, plain_barrier, plain - plain_barrier, graph, graph_barrier, graph - graph_barrier, copied);
}

/// `ddl::allreduce(team.on(stream), in, out)` as programs call it, plainly, and by a graph of such calls.
void library_calls(report& out, int size, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    const std::uint64_t seed = fresh_seed();
    const int each = bytes <= mebi ? 100 : 5;
    cudaEvent_t fork = nullptr;
    require_success(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), "cudaEventCreate");
    std::vector<cudaEvent_t> joins(static_cast<std::size_t>(size));
    ddl::cuda_peer::run(size, [&](ddl::cuda_peer& team) {
        const bool leads = team.rank() == 0;
        const device_memory in{bytes};
        const device_memory sums{bytes};
        const own_stream stream;
        cudaEvent_t& join = joins[static_cast<std::size_t>(team.rank())];
        require_success(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), "cudaEventCreate");
        fill_with_random_values(in.as<float>(), count, seed, team.rank());
        auto queued = team.on(stream);
        const auto call = [&] {
            ddl::allreduce(queued, std::span<const float>{in.as<float>(), count},
                           std::span<float>{sums.as<float>(), count});
        };
        const auto wipe = [&] {
            require_success(cudaMemset(sums.as<void>(), 0xff, bytes), "cudaMemset");
            require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
            ddl::barrier(team);
        };
        wipe();
        call();
        queued.wait();
        require_sums(sums.as<float>(), count, seed, size, "a call");
        wipe();
        const double plain = 1e6 / each * slowest_rank(team.host(), [&] {
                                 for (int i = 0; i < each; ++i) call();
                                 queued.wait();
                             });
        require_sums(sums.as<float>(), count, seed, size, "calls, again and again");
        wipe();
        if (leads) {
            require_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
            require_success(cudaEventRecord(fork, stream), "cudaEventRecord");
        }
        ddl::barrier(team);
        if (!leads) require_success(cudaStreamWaitEvent(stream, fork, 0), "cudaStreamWaitEvent");
        for (int i = 0; i < each; ++i) call();
        if (!leads) require_success(cudaEventRecord(join, stream), "cudaEventRecord");
        ddl::barrier(team);
        double in_graph = 0;
        if (leads) {
            for (int peer = 1; peer < size; ++peer)
                require_success(cudaStreamWaitEvent(stream, joins[static_cast<std::size_t>(peer)], 0),
                                "cudaStreamWaitEvent");
            in_graph = microseconds_of_captured(stream, rows) / each;
        }
        ddl::barrier(team);
        require_sums(sums.as<float>(), count, seed, size, "a graph of calls");
        if (leads)
            out.row(
                "ddl::allreduce(team.on(stream), in, out)  p=%d %9zu B  plain %10.2f us a call on the slowest rank, graph "
                "%10.2f us",
                size, bytes, plain, in_graph);
        require_success(cudaEventDestroy(join), "cudaEventDestroy");
    });
    require_success(cudaEventDestroy(fork), "cudaEventDestroy");
}

/// The gradients of a model by `ddl::allreduce_n`, beside a call for each, and a call for one vector of as many elements.
void many_tensors(report& out, int size, const char* model) {
    const compare::tensor_list list = compare::tensors_of(model);
    const std::uint64_t seed = fresh_seed();
    ddl::cuda_peer::run(size, [&](ddl::cuda_peer& team) {
        const device_memory memory{list.total() * sizeof(float)};
        const std::span<float> whole{memory.as<float>(), list.total()};
        std::vector<std::span<float>> gradients;
        for (const auto& [first, count] : list.all()) gradients.push_back(whole.subspan(first, count));
        const own_stream stream;
        auto queued = team.on(stream);
        const auto refill = [&] { fill_with_random_values(whole.data(), whole.size(), seed, team.rank()); };
        const auto milliseconds = [&](const char* what, const auto& calls) {
            refill();
            require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
            ddl::barrier(team);
            calls();
            queued.wait();
            require_sums(whole.data(), whole.size(), seed, size, what);
            return 1e3 * slowest_rank(team.host(), [&] {
                       calls();
                       queued.wait();
                   });
        };
        const double together = milliseconds("allreduce_n", [&] { ddl::allreduce_n(queued, gradients); });
        const double one_by_one = milliseconds("a call for each", [&] {
            for (const std::span<float>& each : gradients) ddl::allreduce(queued, each);
        });
        const double as_one = milliseconds("one vector", [&] { ddl::allreduce(queued, whole); });
        if (team.rank() == 0)
            out.row(
                "ddl::allreduce_n of the %3zu gradients of %-8s p=%d, %6.1f MiB  %7.3f ms; a call for each %7.3f ms, %5.2f times "
                "as long; one vector %7.3f ms",
                gradients.size(), model, size, static_cast<double>(whole.size_bytes()) / mebi, together, one_by_one,
                one_by_one / together, as_one);
    });
}

/// Two ranks of this process that share a GPU, each with its own vector and stream, through the host; beside the slowest of what
/// must be done at the least: copies one way, the other way, and the host's collective, by both ranks at the same time.
void through_the_host(report& out, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    const std::uint64_t seed = fresh_seed();
    ddl::threads::run(2, [&](ddl::threads& host) {
        const device_memory in{bytes};
        const device_memory sums{bytes};
        const pinned_memory pinned{bytes};
        const own_stream stream;
        ddl::staged team{host};
        fill_with_random_values(in.as<float>(), count, seed, host.rank());
        require_success(cudaMemset(sums.as<void>(), 0xff, bytes), "cudaMemset");
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        auto&& queued = team.on(stream);
        const double staged = slowest_rank(host, [&] {
            ddl::allreduce(queued, std::span<const float>{in.as<float>(), count},
                           std::span<float>{sums.as<float>(), count});
        });
        require_sums(sums.as<float>(), count, seed, 2, "staged");
        const auto copy = [&](void* to, const void* from) {
            return slowest_rank(host, [&] {
                require_success(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
                stream.wait();
            });
        };
        const double fetch = copy(pinned.data(), in.as<void>());
        const double reduce = slowest_rank(host, [&] { ddl::allreduce(host, std::span{pinned.data(), count}); });
        const double store = copy(sums.as<void>(), pinned.data());
        if (host.rank() == 0)
            out.row(
                "staged p=2 %8zu KiB a rank  %9.3f ms; to the host %9.3f ms, back %9.3f ms, host collective %9.3f ms: "
                "%3.0f %% of the slowest",
                bytes / kibi, 1e3 * staged, 1e3 * fetch, 1e3 * store, 1e3 * reduce,
                100 * std::max({fetch, store, reduce}) / staged);
    });
}

int measure(const char* header) {
    if (ddl::require_devices("gpu_bench") > 1)
        throw std::runtime_error("there are several GPUs, and this is about one; name it in CUDA_VISIBLE_DEVICES");
    cudaDeviceProp about{};
    require_success(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
    report out{seconds_in_all};
    const std::string machine =
        std::string{about.name} + ", " + std::to_string(about.multiProcessorCount) + " multiprocessors";
    out.row("%s, L2 %d MiB; random inputs, and every result was checked in float64", machine.c_str(),
            about.l2CacheSize >> 20);
    const own_stream stream;
    const double rate = 1e9 * add_rate(64 * mebi, stream).plain;  // which estimates go by
    for (const int size : {2, 4, 8})
        for (std::size_t bytes = 8; bytes <= 262144; bytes *= bytes < 1024 ? 8 : 4)
            if (out.has_time_for("one-shot", 1e4 * static_cast<double>(bytes) * size * size, rate))
                short_vectors(out, size, bytes, stream);
    std::vector<ddl::grid_row> grids;
    for (const int size : {2, 4, 8})
        for (const std::size_t bytes : {mebi, 64 * mebi, 256 * mebi}) {
            const std::size_t moved = 2 * bytes * static_cast<std::size_t>(size);
            // three elements, whose grids of 1/2 to 1/16 may take as many times as long, 37 calls each
            if (!out.has_time_for("two-shot", 3.0 * 37 * 31 * static_cast<double>(moved), rate)) continue;
            const add_rates limit = add_rate(moved, stream);
            slowness_of_grids slowness;
            long_vectors<float>(out, size, bytes, limit, stream, slowness);
            long_vectors<ddl::bfloat16>(out, size, bytes, limit, stream, slowness);
            long_vectors<ddl::float8_e4m3>(out, size, bytes, limit, stream, slowness);
            for (const auto& [blocks, worst] : slowness)
                if (worst <= 1.03) {
                    grids.push_back({size, bytes, blocks});
                    break;
                }
        }
    for (const int size : {2, 4, 8})
        for (const std::size_t bytes : {std::size_t{8}, 8 * kibi, mebi, 64 * mebi})
            if (out.has_time_for("ddl::allreduce", 2500.0 * size * static_cast<double>(bytes), rate))
                library_calls(out, size, bytes);
    for (const char* const model : {"resnet50", "gpt2"})
        for (const int size : {2, 4, 8})
            if (out.has_time_for("ddl::allreduce_n", 30.0 * 2 * 5e8 * size, rate)) many_tensors(out, size, model);
    for (const std::size_t bytes : {64 * kibi, mebi, 16 * mebi, 64 * mebi, 256 * mebi})
        // 40 times, at what a core's memory or a bus may bear
        if (out.has_time_for("staged", 40.0 * 2 * static_cast<double>(bytes), 2e9)) through_the_host(out, bytes);
    if (header != nullptr) write_grid_header(header, machine, grids);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    try {
        return measure(count > 1 ? words[1] : nullptr);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "gpu_bench: %s\n", failure.what());
        return 1;
    }
}
