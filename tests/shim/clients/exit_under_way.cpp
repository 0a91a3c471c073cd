// SPDX-License-Identifier: Apache-2.0
// A program that ends while calls are under way that it has started, and closes nothing: over MPI, which ends with it, they are
// waited for.
// rows: few
// ranks: 1 2
// mpi-ranks: 2
// two-nodes: 2
#include <ddl.h>
#include <unistd.h>

#include "check.hpp"

int main() {
    ddl_communicator* world = nullptr;
    CHECK(ddl_open_environment(&world) == DDL_OK);
    constexpr std::size_t count = 4'000'000;
    static float* const values = new float[count]();
    for (int call = 0; call < 20; ++call) {
        ddl_request* started = nullptr;
        CHECK(ddl_start_allreduce(world, values, values, count, DDL_FLOAT, DDL_SUM, &started) == DDL_OK);
    }
    ::usleep(5000);  // so that one of them is in MPI by now
}
