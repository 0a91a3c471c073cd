// SPDX-License-Identifier: Apache-2.0
// Every op, and every collective, with unsigned integers of all widths, bool and std::byte.
#include "peer_checks.cuh"

int main() {
    return whole_matrix("gpu.matrix_unsigned",
                        std::tuple<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool, std::byte>{},
                        [](auto&) {});
}
