// SPDX-License-Identifier: Apache-2.0
// Device memory through the host, over threads.
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/transport/staged.cuh>
#include <ddl/transport/threads.hpp>

#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>

#include <algorithm>

#include "../collective/require.hpp"
#include "gpu_test.cuh"

/// Any schedule of the host's transport carries the chunks.
template <class Schedule, class Team>
void by_schedule(Team& team) {
    thrust::device_vector<float> values(100'003, static_cast<float>(team.rank() + 1));
    ddl::allreduce<Schedule>(team, values);
    const thrust::host_vector<float> got = values;
    require(std::count(got.begin(), got.end(), 6.0F) == 100'003, "the sum of all ranks, by another schedule");
}

int main() {
    return on_a_gpu("gpu.staged", [] {
        ddl::threads::run(
            3,
            [](ddl::threads& host) {
                ddl::staged team{host, ddl::staging_shape{.chunk_bytes = 1 << 16, .streams = 3}};
                for (const std::size_t count : {0, 1, 1000, 16'384, 16'385, 1'000'003}) {
                    if (team.rank() == 0) std::fprintf(stderr, "staged: %zu elements, %d ranks\n", count, team.size());
                    thrust::device_vector<float> values(count, static_cast<float>(team.rank() + 1));
                    ddl::allreduce(team, values);
                    const std::vector<float> wanted(count, 6.0F);
                    require(thrust::equal(values.begin(), values.end(), thrust::device_vector<float>(wanted).begin()),
                            "the sum of all ranks");
                }
                by_schedule<ddl::ring>(team);
                by_schedule<ddl::recursive_doubling>(team);
                by_schedule<ddl::tree>(team);
                by_schedule<ddl::recursive_halving>(team);
                by_schedule<ddl::multi_ring<2>>(team);
                cudaStream_t stream = nullptr;
                ddl::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate", team.rank(), team.device());
                thrust::device_vector<int> ones(1000, 1);
                ddl::allreduce(team.on(thrust::cuda::par.on(stream)), ones);
                ddl::allreduce(team.on(thrust::cuda::par_nosync.on(stream)), ones, ddl::maximum{});
                ddl::allreduce(team.on(thrust::device), ones, ddl::minimum{});
                require(ones[999] == 3, "the sum of ones, whatever the policy");
                auto queued = team.on(stream);
                const ddl::request sum = ddl::allreduce_async(queued, ones);
                sum.wait();
                require(ones[999] == 9, "a call that is carried out behind the stream");

                thrust::device_vector<float> blocks(300'000, static_cast<float>(team.rank()));
                thrust::device_vector<float> mine(100'000);
                ddl::reduce_scatter(team, blocks, mine);
                require(mine[99'999] == 3, "reduce_scatter");
                ddl::all_to_all(team, blocks);
                require(blocks[99'999] == 0 && blocks[100'000] == 1 && blocks[299'999] == 2, "all_to_all in place");
                ddl::broadcast(team, mine, 1);
                std::vector<float> elsewhere(10);
                require_error(ddl::errc::invalid_argument, "is no memory of CUDA device",
                              [&] { ddl::broadcast(team, elsewhere); });
                ddl::require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
                                  "cudaStreamBeginCapture", team.rank(), team.device());
                require_error(ddl::errc::invalid_argument, "under capture", [&] { ddl::allreduce(queued, mine); });
                cudaGraph_t graph = nullptr;
                ddl::require_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture", team.rank(),
                                  team.device());
                ddl::require_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy", team.rank(), team.device());
                ddl::require_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy", team.rank(), team.device());
            },
            ddl::timeout{20});
    });
}
