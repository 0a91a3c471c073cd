// SPDX-License-Identifier: Apache-2.0
// A rank that has failed ends without ddl_finalize, and the others are not left to wait for it.
// ranks: none
// mpi-ranks: 2 3
// prints: rank 1 gave up: its process ended with status 3
// rows: few
#include "check.hpp"
#include <ddl.hpp>

int main() {
    CHECK(ddl_init("") == DDL_SUCCESS);
    int rank = 0;
    CHECK(ddl_rank(&rank) == DDL_SUCCESS);
    float value = 1;
    CHECK(ddl_allreduce(&value, 1, DDL_TYPE_FLOAT, DDL_OP_SUM) == DDL_SUCCESS);
    if (rank == 1) return 3;
    CHECK(ddl_allreduce(&value, 1, DDL_TYPE_FLOAT, DDL_OP_SUM) != DDL_SUCCESS);
    CHECK(ddl_finalize() == DDL_SUCCESS);
}
