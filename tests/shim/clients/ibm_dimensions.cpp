// SPDX-License-Identifier: Apache-2.0
// A program of two dimensions that asks for figures: the first half of a vector goes inward and back, a quarter outward and back.
// ranks: 4
// mpi-ranks: 4
// two-nodes: 4
// options: -mode r:2x2 -dump_iter 2
// prints: dims 2x2x1x1, schedule rings, dim 0: [0-9.]*[1-9][0-9.]* ms, 0.800 MB sent, dim 1: [0-9.]*[1-9][0-9.]* ms, 0.400 MB sent
#include "check.hpp"
#include <ddl.hpp>

float values[100'000];

int main() {
    for (int call = 0; call < 2; ++call) CHECK(ddl_allreduce(values, 100'000) == DDL_SUCCESS);
    CHECK(ddl_finalize() == DDL_SUCCESS);
}
