// SPDX-License-Identifier: Apache-2.0
// The order of calls of Horovod 0.13.10 to 0.16.2: it starts MPI itself, its background thread starts DDL at the first
// reduction, and ddl_finalize stands in for MPI_Finalize.
// ranks: none
// mpi-ranks: 1 2 4
// options: -mode b:%n
#include <mpi.h>

#include <stdexcept>
#include <thread>

#include "check.hpp"
#include <ddl.hpp>

int main() {
    int size = 0;
    std::thread background{[&] {
        int level = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Comm own;
        MPI_Comm_dup(MPI_COMM_WORLD, &own);

        const char* const options = std::getenv("DDL_OPTIONS");
        if (options == nullptr) throw std::logic_error("DDL_OPTIONS is not set");
        if (ddl_init(options) != DDL_SUCCESS) throw std::logic_error("ddl_init failed.");
        for (int time = 0; time < 5; ++time) {
            float fused[1000];
            for (float& each : fused) each = 1;
            if (ddl_allreduce(fused, std::size_t{1000}, DDL_TYPE_FLOAT, DDL_OP_SUM) != DDL_SUCCESS)
                throw std::logic_error("ddl_allreduce failed.");
            for (const float each : fused) CHECK(each == static_cast<float>(size));
            MPI_Barrier(own);  // its own messages, in between
        }
        MPI_Comm_free(&own);
        const DDL_Type type = DDL_TYPE_HALF;
        unsigned short halves[4] = {0x3c00, 0x3c00, 0x4000, 0};
        CHECK(ddl_allreduce(halves, 4, type, DDL_OP_MAX) == DDL_SUCCESS);
        CHECK(halves[2] == 0x4000);
        ddl_finalize();
    }};
    background.join();
    int ended = 0;
    MPI_Finalized(&ended);
    CHECK(ended == 1);
}
