// SPDX-License-Identifier: Apache-2.0
// The same as ibm_dimensions with all ranks on one level, which is that of a node: three quarters of a vector go round, twice.
// ranks: 4
// mpi-ranks: 4
// two-nodes: 4
// options: -mode r:%n -dump_iter 2
// prints: dims 4x1x1x1, schedule rings, dim 0: [0-9.]*[1-9][0-9.]* ms, 1.200 MB sent
#include "check.hpp"
#include <ddl.hpp>

float values[100'000];

int main() {
    for (int call = 0; call < 2; ++call) CHECK(ddl_allreduce(values, 100'000) == DDL_SUCCESS);
    CHECK(ddl_finalize() == DDL_SUCCESS);
}
