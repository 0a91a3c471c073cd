// SPDX-License-Identifier: Apache-2.0
// Every op, and every collective, with floats; sums of complex numbers, and products of whole ones: what those of others are made
// of nvcc fuses.
#include <ddl/element/complex.hpp>

#include "peer_checks.cuh"

/// The product of Gaussian integers, which is exact.
template <class Part>
void products(ddl::cuda_peer& team) {
    using complex = std::complex<Part>;
    for (const std::size_t count : {5, 70'001}) {
        const auto of = [](int rank, std::size_t i) {
            return complex{static_cast<Part>(rank + 1), static_cast<Part>(i % 5) - 2};
        };
        thrust::host_vector<complex> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = of(team.rank(), i);
        thrust::device_vector<complex> on_gpu = values;
        ddl::allreduce(team, on_gpu, ddl::product{});
        values = on_gpu;
        for (std::size_t i = 0; i < count; ++i) {
            complex wanted = 1;
            for (int rank = 0; rank < team.size(); ++rank) wanted *= of(rank, i);
            require(values[i] == wanted, "a product of complex numbers");
        }
    }
}

int main() {
    return whole_matrix("gpu.matrix_floats", std::tuple<float, double, ddl::located<float>, ddl::located<double>>{},
                        [](ddl::cuda_peer& team) {
                            sweep<ddl::sum, std::complex<float>>(team);
                            sweep<ddl::sum, std::complex<double>>(team);
                            sweep<ddl::average, std::complex<float>>(team);
                            products<float>(team);
                            products<double>(team);
                        });
}
