// SPDX-License-Identifier: Apache-2.0
// A program that ends while a thread of its goes from call to call, as one of all ranks does: over MPI, which ends with it, the call is
// ended, of which the others hear.
// rows: few
// ranks: 2
// mpi-ranks: 2
// two-nodes: 2
#include <cstring>
#include <ddl.h>
#include <thread>
#include <unistd.h>

#include "check.hpp"

int main() {
    ddl_communicator* world = nullptr;
    CHECK(ddl_open_environment(&world) == DDL_OK);
    constexpr std::size_t count = 4'000'000;
    static float* const values = new float[count]();
    std::thread{[world] {
        while (ddl_run_allreduce(world, values, values, count, DDL_FLOAT, DDL_SUM) == DDL_OK) {}
    }}.detach();
    ::usleep(200'000);  // so that it is in a call by now
}
