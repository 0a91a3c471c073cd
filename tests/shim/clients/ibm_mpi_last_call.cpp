// SPDX-License-Identifier: Apache-2.0
// A program that reduces once more in a destructor of its own, which ends MPI: what the interface knows of MPI's types is still there.
// rows: few
// ranks: none
// mpi-ranks: 2
#include <mpi.h>

#include <cstdlib>
#include <cstring>

#include "check.hpp"
#include <ddl_mpi.hpp>

namespace {

int sum_over_ranks() {
    float value = 1;
    CHECK(ddl_allreduce_mpi("-mode p", &value, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == 0);
    return static_cast<int>(value);
}

struct ended_last {
    int size = 0;
    ~ended_last() {
        for (int i = 0; i < 1000; ++i) std::memset(std::malloc(48), 0x55, 48);  // what others gave back is overwritten
        CHECK(sum_over_ranks() == size);
        CHECK(MPI_Finalize() == MPI_SUCCESS);
    }
} ended;

}  // namespace

int main(int arguments, char** words) {
    CHECK(MPI_Init(&arguments, &words) == MPI_SUCCESS);
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &ended.size) == MPI_SUCCESS);
    CHECK(sum_over_ranks() == ended.size);
}
