// SPDX-License-Identifier: Apache-2.0
// Every op, and every collective, with signed integers of all widths.
#include "peer_checks.cuh"

int main() {
    return whole_matrix("gpu.matrix_integers", std::tuple<std::int8_t, std::int16_t, std::int32_t, std::int64_t>{},
                        [](auto&) {});
}
