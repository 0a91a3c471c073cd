// SPDX-License-Identifier: Apache-2.0
// Every op, and every collective, with narrow floats, by our names and by CUDA's.
#include "peer_checks.cuh"

int main() {
    return whole_matrix("gpu.matrix_narrow",
                        std::tuple<ddl::half, ddl::bfloat16, ddl::float8_e4m3, ddl::float8_e5m2, __half, __nv_bfloat16,
                                   __nv_fp8_e4m3, __nv_fp8_e5m2>{},
                        [](auto&) {});
}
