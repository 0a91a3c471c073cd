// SPDX-License-Identifier: Apache-2.0
// Every op, and every collective, with floats; sums of complex numbers, for nvcc fuses what their products are made of.
#include <ddl/element/complex.hpp>

#include "peer_checks.cuh"

int main() {
    return whole_matrix("gpu.matrix_floats", std::tuple<float, double, ddl::located<float>, ddl::located<double>>{},
                        [](ddl::cuda_peer& team) {
                            sweep<ddl::sum, std::complex<float>>(team);
                            sweep<ddl::sum, std::complex<double>>(team);
                        });
}
