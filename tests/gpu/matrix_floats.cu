// SPDX-License-Identifier: Apache-2.0
// Every op, and every collective, with floats.
#include "peer_checks.cuh"

int main() {
    return whole_matrix("gpu.matrix_floats", std::tuple<float, double, ddl::located<float>, ddl::located<double>>{});
}
