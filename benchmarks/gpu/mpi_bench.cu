// SPDX-License-Identifier: Apache-2.0
// What an allreduce of device memory takes that programs write who have MPI alone: a copy to pinned memory, MPI_Allreduce, a copy
// back; beside ddl::cuda_ipc among the same processes, and ddl::staged over the same MPI. Started by mpirun; ranks share the first
// GPU, or what CUDA_VISIBLE_DEVICES leaves.
#include <ddl/transport/cuda_ipc.cuh>
#include <ddl/transport/mpi.hpp>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/staged.cuh>

#include <optional>
#include <random>

#include "random_values.cuh"
#include "report.cuh"

namespace {

constexpr double seconds_in_all = 25;
constexpr int turns = 5;

void require_mpi(int status, const char* operation) {
    if (status != MPI_SUCCESS) throw std::runtime_error(std::string{operation} + " failed");
}

/// The same on all ranks: what rank 0 has.
template <class Value>
Value of_first_rank(Value value) {
    require_mpi(MPI_Bcast(&value, sizeof value, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return value;
}

using grids_of_processes = ddl::cuda_ipc<ddl::shared_memory>;

/// None where a rank's GPU cannot open the memory of another process.
std::optional<grids_of_processes> grids_over(ddl::shared_memory& node) {
    std::optional<grids_of_processes> gpus;
    const device_memory word{sizeof(float)};
    try {
        gpus.emplace(node);
        ddl::allreduce(*gpus, std::span{word.as<float>(), 1}, ddl::maximum{});
        gpus->forget();
    } catch (const ddl::error& reason) {
        std::fprintf(stderr, "%s\n", reason.what());
        gpus.reset();
    }
    int all = gpus ? 1 : 0;
    require_mpi(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
    if (all == 0) gpus.reset();
    return gpus;
}

void measure(ddl::mpi& wire, std::optional<grids_of_processes>& grids, report& out, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    const auto seed = of_first_rank<std::uint64_t>(std::random_device{}());
    const device_memory in{bytes};
    const device_memory sums{bytes};
    const pinned_memory pinned{bytes};
    const own_stream stream;
    const std::span<const float> from{in.as<float>(), count};
    const std::span<float> to{sums.as<float>(), count};
    fill_with_random_values(in.as<float>(), count, seed, wire.rank());
    const auto time_of = [&](const char* what, const auto& act) {
        require_success(cudaMemset(sums.as<void>(), 0xff, bytes), "cudaMemset");
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const double time = slowest_rank(wire, act, turns);
        require_sums(sums.as<float>(), count, seed, wire.size(), what);
        return 1e6 * time;
    };
    const double by_hand = time_of("copies and MPI_Allreduce", [&] {
        require_success(cudaMemcpyAsync(pinned.data(), in.as<void>(), bytes, cudaMemcpyDeviceToHost, stream),
                        "cudaMemcpyAsync");
        stream.wait();
        require_mpi(
            MPI_Allreduce(MPI_IN_PLACE, pinned.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
            "MPI_Allreduce");
        require_success(cudaMemcpyAsync(sums.as<void>(), pinned.data(), bytes, cudaMemcpyHostToDevice, stream),
                        "cudaMemcpyAsync");
        stream.wait();
    });
    ddl::staged through_host{wire};
    auto chunks = through_host.on(stream);
    const double staged = time_of("ddl::staged", [&] { ddl::allreduce(chunks, from, to); });
    double fused = 0;
    if (grids) {
        auto queued = grids->on(stream);
        fused = time_of("ddl::cuda_ipc", [&] {
            ddl::allreduce(queued, from, to);
            queued.wait();
        });
        grids->forget();  // before the memory goes
    }
    if (wire.rank() == 0)
        out.row(
            "over MPI p=%d %10zu B a rank  copies and MPI_Allreduce %11.1f us; ddl::cuda_ipc %11.1f us, %6.2f times as "
            "quick; ddl::staged %11.1f us, %6.2f times",
            wire.size(), bytes, by_hand, fused, fused > 0 ? by_hand / fused : 0.0, staged, by_hand / staged);
}

}  // namespace

int main() {
    try {
        ddl::require_devices("mpi_bench");  // before MPI, so that no rank waits for another
        ddl::mpi wire;
        require_success(cudaSetDevice(0), "cudaSetDevice");
        report out{seconds_in_all};
        ddl::shared_memory node{"mpi-bench-" + std::to_string(of_first_rank<std::uint64_t>(std::random_device{}())),
                                wire.rank(), wire.size(), ddl::timeout{10}};
        auto grids = grids_over(node);
        if (!grids && wire.rank() == 0) out.row("over MPI p=%d  ddl::cuda_ipc: left out, see above", wire.size());
        double rate = 1e9;  // bytes a second of all that is measured, as the last size had it
        for (std::size_t bytes = 8; bytes <= std::size_t{256} << 20; bytes *= bytes < 1 << 18 ? 8 : 4) {
            const int goes = wire.rank() != 0 || out.has_time_for("over MPI", static_cast<double>(bytes), rate);
            if (of_first_rank(goes) == 0) break;
            const double begin = ddl::now();
            measure(wire, grids, out, bytes);
            rate = static_cast<double>(bytes) / (ddl::now() - begin);
        }
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "mpi_bench: %s\n", failure.what());
        return 1;
    }
}
