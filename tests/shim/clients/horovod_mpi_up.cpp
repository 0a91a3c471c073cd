// SPDX-License-Identifier: Apache-2.0
// Horovod 0.16.3 and later where somebody else started MPI: ddl_init and ddl_finalize are never called.
// ranks: none
// mpi-ranks: 1 2 4
// options: -mode b:%n
#include <mpi.h>

#include "check.hpp"
#include <ddl.hpp>

int main() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    float fused[3] = {1, 2, 3};
    CHECK(ddl_allreduce(fused, 3, DDL_TYPE_FLOAT, DDL_OP_SUM) == DDL_SUCCESS);
    CHECK(fused[2] == static_cast<float>(3 * size));
    MPI_Finalize();
}
