// SPDX-License-Identifier: Apache-2.0
// Horovod 0.13.10 to 0.16.2 where nothing was reduced on a GPU: ddl_finalize without ddl_init.
// ranks: none
// mpi-ranks: 1 2
#include <mpi.h>

#include "check.hpp"
#include <ddl.hpp>

int main() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(ddl_finalize() == DDL_SUCCESS);
    int ended = 0;
    MPI_Finalized(&ended);
    CHECK(ended == 1);
}
