// SPDX-License-Identifier: Apache-2.0
// What an allreduce of device memory takes that programs write who have MPI alone: a copy to pinned memory, MPI_Allreduce, a copy
// back; beside ddl::staged over the same MPI. Started by mpirun; ranks share the first GPU, or what CUDA_VISIBLE_DEVICES leaves.
#include <ddl/transport/mpi.hpp>
#include <ddl/transport/staged.cuh>

#include <random>

#include "random_values.cuh"
#include "report.cuh"

namespace {

constexpr double seconds_in_all = 20;
constexpr double bytes_a_second = 1e9;  // of a host that is slow, for estimates

void require_mpi(int status, const char* operation) {
    if (status != MPI_SUCCESS) throw std::runtime_error(std::string{operation} + " failed");
}

void measure(ddl::mpi& wire, report& out, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    std::uint64_t seed = std::random_device{}();
    require_mpi(MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD), "MPI_Bcast");
    const device_memory in{bytes};
    const device_memory sums{bytes};
    const pinned_memory pinned{bytes};
    const own_stream stream;
    ddl::staged team{wire};
    auto&& queued = team.on(stream);
    fill_with_random_values(in.as<float>(), count, seed, wire.rank());
    const auto time_of = [&](const char* what, const auto& act) {
        require_success(cudaMemset(sums.as<void>(), 0xff, bytes), "cudaMemset");
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const double time = slowest_rank(wire, act);
        require_sums(sums.as<float>(), count, seed, wire.size(), what);
        return 1e3 * time;
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
    const double ours = time_of("ddl::staged", [&] {
        ddl::allreduce(queued, std::span<const float>{in.as<float>(), count},
                       std::span<float>{sums.as<float>(), count});
    });
    if (wire.rank() == 0)
        out.row(
            "over MPI p=%d %8zu KiB a rank  copies and MPI_Allreduce %9.3f ms, ddl::staged %9.3f ms, %.2f times as quick",
            wire.size(), bytes / 1024, by_hand, ours, by_hand / ours);
}

}  // namespace

int main() {
    try {
        ddl::require_devices("mpi_bench");  // before MPI, so that no rank waits for another
        ddl::mpi wire;
        require_success(cudaSetDevice(0), "cudaSetDevice");
        report out{seconds_in_all};
        for (const std::size_t kibi : {64, 1024, 16 * 1024, 64 * 1024}) {
            const auto bytes = kibi * 1024;
            // 20 times and more, two copies and the collective of each rank
            int goes =
                wire.rank() != 0 ||
                out.has_time_for("over MPI", 20.0 * 4 * wire.size() * static_cast<double>(bytes), bytes_a_second);
            require_mpi(MPI_Bcast(&goes, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
            if (goes != 0) measure(wire, out, bytes);
        }
        if (wire.rank() == 0) std::fputs(out.table().c_str(), stdout);
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "mpi_bench: %s\n", failure.what());
        return 1;
    }
}
