// SPDX-License-Identifier: Apache-2.0
// A rank that has failed ends without dl_comm_finalize, and the others are not left to wait for it.
// ranks: none
// mpi-ranks: 2 3
// prints: rank 1 gave up: its process ended with status 3
// rows: few
#include <dl_comm.h>

#include "check.hpp"

int main() {
    CHECK(dl_comm_init() == 0);
    CHECK(dl_create_team(0, 2, 0) == 0);
    float value = 1;
    void* tensor = &value;
    void** tower = &tensor;
    int length = 1;
    int* tower_lengths = &length;
    dlDataType_t type = DL_COMM_FLOAT;
    dlDataType_t* tower_types = &type;
    int count = 1;
    const auto average = [&] { return dl_comm_gradients(&tower, &tower_lengths, &tower_types, &count, 1, 0); };
    CHECK(average() == 0);
    if (dl_comm_get_rank() == 1) return 3;
    CHECK(average() != 0);
    CHECK(dl_comm_finalize() == 0);
}
