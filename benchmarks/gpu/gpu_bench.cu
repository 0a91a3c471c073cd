// SPDX-License-Identifier: Apache-2.0
// What an allreduce over virtual ranks of one GPU takes, beside what the GPU can do. Built and run by benchmarks/gpu/run.
#include <ddl/allreduce.hpp>
#include <ddl/transport/staged.cuh>
#include <ddl/transport/threads.hpp>

#include <cub/device/device_transform.cuh>
#include <cuda/std/tuple>
#include <thrust/functional.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform.h>

#include <cstdio>
#include <random>
#include <span>

#include "problem.cuh"

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

std::string table;

template <class... Values>
void row(const char* format, Values... values) {
    char line[768];
    std::snprintf(line, sizeof line, format, values...);
    std::fprintf(stderr, "%s\n", line);  // at once, lest a hang takes it away
    table += line;
    table += '\n';
}

constexpr int rows = 11;

/// Gigabytes a second that an add of CUB's moves, of so many bytes in all: memory as an allreduce moves it, without ranks.
double add_rate(std::size_t bytes) {
    const std::size_t count = bytes / 3 / sizeof(float);
    const device_memory a{count * sizeof(float)};
    const device_memory b{count * sizeof(float)};
    const device_memory c{count * sizeof(float)};
    require_success(cudaMemset(a.as<void>(), 0, count * sizeof(float)), "cudaMemset");
    require_success(cudaMemset(b.as<void>(), 0, count * sizeof(float)), "cudaMemset");
    const double time = microseconds_each(nullptr, rows, 5, [&] {
        require_success(cub::DeviceTransform::Transform(cuda::std::make_tuple(a.as<float>(), b.as<float>()),
                                                        c.as<float>(), count, thrust::plus<float>{}),
                        "cub::DeviceTransform");
    });
    return 3e-3 * static_cast<double>(count * sizeof(float)) / time;
}

/// The straightforward form: all inputs copied side by side, added, and the sum copied to all outputs.
double straightforward(problem<float>& ranks, std::size_t count) {
    const int size = ranks.places.size;
    constexpr cudaStream_t stream = nullptr;
    const auto policy = thrust::cuda::par_nosync.on(stream);  // else every sum waits for the GPU
    const device_memory side_by_side{count * sizeof(float) * static_cast<std::size_t>(size)};
    const auto part = [&](int rank) { return side_by_side.as<float>() + static_cast<std::size_t>(rank) * count; };
    return microseconds_each(stream, rows, 1, [&] {
        const auto copy = [&](float* to, const float* from) {
            require_success(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream),
                            "cudaMemcpyAsync");
        };
        for (int rank = 0; rank < size; ++rank) copy(part(rank), ranks.places.in[rank]);
        for (int rank = 1; rank < size; ++rank)
            thrust::transform(policy, part(0), part(0) + count, part(rank), part(0), thrust::plus<float>{});
        for (int rank = 0; rank < size; ++rank) copy(ranks.places.out[rank], part(0));
    });
}

template <class Element>
void long_vectors(int size, std::size_t bytes, std::uint64_t seed, double limit) {
    const std::size_t count = bytes / sizeof(Element);
    problem<Element> ranks{size, count, seed};
    using body = ddl::grid_two_shot<ddl::sum, Element>;
    const body fused{ranks.places, count, {}};
    const ddl::grid_shape widest =
        ddl::two_shot_shape<Element>(count, size, ranks.most_blocks(), ddl::longest_device_block);
    struct sample {
        int blocks;
        double time;
    };
    std::vector<sample> samples;
    for (int blocks = widest.blocks; blocks >= 1 && samples.size() < 5; blocks /= 2) {
        const auto shot = [&] { ranks.launch(fused, {blocks, widest.threads}, nullptr); };
        ranks.check("two-shot of " + std::to_string(blocks) + " blocks", shot);
        samples.push_back({blocks, microseconds_each(nullptr, rows, 3, shot)});
        ranks.require_sums("two-shot of " + std::to_string(blocks) + " blocks, again and again");
    }
    const double best =
        std::min_element(samples.begin(), samples.end(), [](auto& l, auto& r) { return l.time < r.time; })->time;
    int smallest = widest.blocks;
    for (const sample& one : samples)
        if (one.time <= 1.03 * best) smallest = std::min(smallest, one.blocks);
    const double rate = 2e-3 * size * static_cast<double>(bytes) / best;
    row("two-shot %-12s p=%d %8zu KiB a rank %10.1f us %7.0f GB/s, add %7.0f GB/s: %5.1f %%; blocks %d of %d",
        ddl::element_name<Element>(), size, bytes / 1024, best, rate, limit, 100 * rate / limit, smallest,
        widest.blocks);
    if constexpr (std::is_same_v<Element, float>) {
        const double copied = straightforward(ranks, count);
        row("         the straightforward form takes %.1f us, %.1f times as long", copied, copied / best);
    }
}

void short_vectors(int size, std::uint64_t seed, cudaStream_t stream) {
    for (std::size_t bytes = 8; bytes <= 65536; bytes *= bytes < 1024 ? 8 : 4) {
        const std::size_t count = bytes / sizeof(float);
        problem<float> ranks{size, count, seed + bytes};
        using body = ddl::grid_one_shot<ddl::sum, float>;
        if (count > body::most(std::min(ranks.most_blocks(), ddl::grid_window::inbox_blocks))) {
            row("one-shot p=%d %6zu B  left out: more than the inboxes of %d blocks hold", size, bytes,
                ranks.most_blocks());
            continue;
        }
        const auto shape = ddl::one_shot_shape<body>(count, ranks.most_blocks(), ddl::longest_device_block);
        const auto shot = [&] { ranks.launch(body{ranks.places, count, {}}, shape, stream); };
        const auto barrier = [&] { ranks.launch(empty_barrier<float>{ranks.places}, shape, stream); };
        ranks.check("one-shot", shot);
        ranks.refill(seed + bytes + 1);  // what is left in the inboxes is none of these sums
        ranks.check("one-shot of other inputs", shot);
        const double plain = microseconds_each(stream, rows, 100, shot);
        const double graph = microseconds_in_a_graph(stream, rows, 100, shot);
        ranks.require_sums("one-shot, again and again");
        const double plain_barrier = microseconds_each(stream, rows, 100, barrier);
        const double graph_barrier = microseconds_in_a_graph(stream, rows, 100, barrier);
        row("one-shot p=%d %6zu B  plain %6.2f us, barrier %6.2f: %+5.2f   graph %6.2f us, barrier %6.2f: %+5.2f", size,
            bytes, plain, plain_barrier, plain - plain_barrier, graph, graph_barrier, graph - graph_barrier);
    }
}

/// Two ranks of this process that share a GPU, each with its own vector, through the host.
void through_the_host(std::uint64_t seed) {
    constexpr std::size_t count = std::size_t{16} << 20;
    constexpr std::size_t bytes = count * sizeof(float);
    ddl::threads::run(2, [seed](ddl::threads& host) {
        const device_memory data{bytes};
        ddl::staged team{host};
        const std::span<float> values{data.as<float>(), count};
        std::vector<float> check(count);
        fill<<<1024, 256>>>(values.data(), count, seed, host.rank());
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        ddl::allreduce(team, values);
        require_success(cudaMemcpy(check.data(), values.data(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (std::size_t i = 0; i < count; ++i)
            if (!(std::abs(static_cast<double>(check[i]) - (static_cast<double>(random_value(seed, 0, i)) +
                                                            static_cast<double>(random_value(seed, 1, i)))) <= 1e-6))
                throw std::runtime_error("staged: wrong sums");
        const auto median = [&](const auto& act) {
            std::vector<double> times;
            for (int turn = -1; turn < 7; ++turn) {
                ddl::barrier_over<ddl::direct, ddl::checked>(host);
                const double begin = ddl::now();
                act();
                if (turn >= 0) times.push_back(ddl::now() - begin);
            }
            std::nth_element(times.begin(), times.begin() + 3, times.end());
            return times[3];
        };
        const double staged = median([&] { ddl::allreduce(team, values); });
        void* pinned = nullptr;
        require_success(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault), "cudaHostAlloc");
        const std::span<float> here{static_cast<float*>(pinned), count};
        const double reduce = median([&] { ddl::allreduce(host, here); });
        const double copies = median(
            [&] { require_success(cudaMemcpy(pinned, values.data(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy"); });
        require_success(cudaFreeHost(pinned), "cudaFreeHost");
        if (host.rank() == 0)
            row("staged p=2 %zu KiB a rank: %.2f ms; copy to the host %.2f ms, host collective %.2f ms: %.0f %% of the slower",
                bytes / 1024, 1e3 * staged, 1e3 * copies, 1e3 * reduce, 100 * std::max(copies, reduce) / staged);
    });
}

int measure() {
    ddl::require_devices("gpu_bench");
    cudaDeviceProp about{};
    require_success(cudaGetDeviceProperties(&about, 0), "cudaGetDeviceProperties");
    const std::uint64_t seed = std::random_device{}();
    row("%s, %d multiprocessors, L2 %d MiB; inputs from seed %llu; every result was checked in float64", about.name,
        about.multiProcessorCount, about.l2CacheSize >> 20, static_cast<unsigned long long>(seed));
    cudaStream_t stream = nullptr;
    require_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (const int size : {2, 4, 8}) short_vectors(size, seed, stream);
    for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{64} << 20, std::size_t{256} << 20})
        for (const int size : {2, 4, 8}) {
            const double limit = add_rate(2 * bytes * static_cast<std::size_t>(size));
            long_vectors<float>(size, bytes, seed, limit);
            long_vectors<ddl::bfloat16>(size, bytes, seed, limit);
            long_vectors<ddl::float8_e4m3>(size, bytes, seed, limit);
        }
    through_the_host(seed);
    require_success(cudaStreamDestroy(stream), "cudaStreamDestroy");
    std::fputs(table.c_str(), stdout);
    return 0;
}

}  // namespace

int main() {
    try {
        return measure();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "gpu_bench: %s\n", failure.what());
        return 1;
    }
}
