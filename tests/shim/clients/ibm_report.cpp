// SPDX-License-Identifier: Apache-2.0
// A program that asks for figures: every second call rank 0 writes a line.
// ranks: 1 2 3
// mpi-ranks: 2
// options: -mode p:%nx1x1x1 -dump_iter 2 -rebind_iter 2 -dbg_level 1
// prints: call 4: slowest learner [0-9]+, end to end [0-9.]+ ms, [0-9.]+ GB/s, dims [1-9]x1x1x1, schedule tuned
#include "check.hpp"
#include <ddl.hpp>

int main() {
    float values[1000] = {};
    for (int call = 0; call < 5; ++call) CHECK(ddl_allreduce(values, 1000) == DDL_SUCCESS);
    CHECK(ddl_finalize() == DDL_SUCCESS);
}
