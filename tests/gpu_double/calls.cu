// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/transport/cuda_peer.cuh>

#include <thrust/device_vector.h>

#include "../collective/require.hpp"
#include "../gpu/gpu_test.cuh"

int main() {
    return on_a_gpu("gpu_double.calls", [] {
        ddl::cuda_peer::run(2, [](ddl::cuda_peer& team) {
            thrust::device_vector<float> values(1000, 1.0F);
            ddl::allreduce(team, values);
            require(values[999] == 2.0F, "a sum");
        }, ddl::timeout{20});
    });
}
