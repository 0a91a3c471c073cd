// SPDX-License-Identifier: Apache-2.0
// A program that asks for its rank before it starts DDL, where more than one launcher says who it is: the answer is that of later.
// rows: few
// ranks: 1 3
// mpi-ranks: 1 3
#include <mpi.h>

#include "check.hpp"
#include <ddl.hpp>

int main() {
    if (std::getenv("DDL_JOB") == nullptr) {  // mpirun, with what another launcher has left
        setenv("RANK", "0", 1);
        setenv("WORLD_SIZE", "1", 1);
    } else {  // ranks of this host, each of which uses MPI for itself
        setenv("DDL_TRANSPORT", "shared_memory", 1);
        CHECK(MPI_Init(nullptr, nullptr) == MPI_SUCCESS);
    }
    int before = -1;
    CHECK(ddl_rank(&before) == DDL_SUCCESS);
    CHECK(ddl_init("") == DDL_SUCCESS);
    int rank = -1;
    CHECK(ddl_rank(&rank) == DDL_SUCCESS);
    CHECK(before == rank);
    float ranks = static_cast<float>(rank);
    CHECK(ddl_allreduce(&ranks, 1) == DDL_SUCCESS);
    int size = 0;
    CHECK(ddl_size(&size) == DDL_SUCCESS);
    CHECK(ranks == static_cast<float>(size * (size - 1) / 2));
    CHECK(ddl_finalize() == DDL_SUCCESS);
}
