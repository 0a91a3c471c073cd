// SPDX-License-Identifier: Apache-2.0
// Device memory over MPI, handed over as it is or through the host, as MPI says. Also to be run under mpirun.
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/reduce.hpp>
#include <ddl/transport/device_mpi.cuh>

#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>

#include "../collective/require.hpp"
#include "gpu_test.cuh"
#ifdef CUDA_DOUBLE
#include "../gpu_double/failing_calls.hpp"

namespace {

void fail_in_each_call(ddl::mpi& control) {
    every_call_of_a_process_may_fail("device_mpi", control, [] {
        ddl::mpi wire;
        wire.set_timeout(ddl::timeout{20});
        const ones data;
        try {
            ddl::device_mpi gpus{wire};
            ddl::allreduce(gpus, data.values());
            auto queued = gpus.on(cudaStreamPerThread);
            ddl::allreduce_async(queued, data.values()).wait();
            require(data.last() == 4, "two sums");
        } catch (const ddl::error& failure) {
            wire.fail(failure.code(), failure.what());
            throw;
        }
    });
}

}  // namespace
#endif

int main() {
    return on_a_gpu("gpu.device_mpi", [] {
        ddl::mpi wire;
        wire.set_timeout(ddl::timeout{20});
        ddl::require_cuda(cudaSetDevice(wire.rank() % ddl::require_devices("gpu.device_mpi")), "cudaSetDevice",
                          wire.rank(), 0);
        ddl::device_mpi gpus{wire};
        ddl::staged through_host{wire};
        std::printf("device memory is %s MPI\n", gpus.takes_device_memory() ? "handed to" : "staged for");
        for (const std::size_t count : {0, 1, 1000, 1'000'003}) {
            thrust::device_vector<float> values(count, static_cast<float>(wire.rank() + 1));
            ddl::allreduce(gpus, values);
            const auto all = static_cast<float>(wire.size() * (wire.size() + 1)) / 2;
            std::vector<float> result(count);
            thrust::copy(values.begin(), values.end(), result.begin());
            require(result == std::vector<float>(count, all), "the sum of all ranks");
            ddl::allreduce(through_host, values, ddl::maximum{});
            thrust::copy(values.begin(), values.end(), result.begin());
            require(result == std::vector<float>(count, all),
                    "the largest of equals, through the host whatever MPI takes");
        }
        const auto ranks = static_cast<std::size_t>(wire.size());
        thrust::device_vector<float> blocks(1000 * ranks, static_cast<float>(wire.rank()));
        auto queued = gpus.on(thrust::cuda::par.on(cudaStreamPerThread));
        ddl::all_to_all_async(queued, blocks).wait();
        require(blocks[1000 * ranks - 1] == static_cast<float>(wire.size() - 1), "all_to_all in place");
        ddl::reduce(gpus, blocks, ddl::maximum{}, 0);
#ifdef CUDA_DOUBLE
        if (wire.size() == 2) fail_in_each_call(wire);
#endif
    });
}
