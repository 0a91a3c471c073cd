// SPDX-License-Identifier: Apache-2.0
// The order of calls of Horovod 0.16.3 and later: its background thread calls ddl_init instead of MPI_Init, then talks MPI on
// a duplicate of the world, between reductions. A process that it forks ends nothing of that.
// ranks: none
// mpi-ranks: 1 2 4
// options: -mode p:%nx1x1x1
#include <mpi.h>

#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.hpp"
#include <ddl.hpp>

bool forked = false;

void leaves_mpi_alone() {
    int ended = 0;
    MPI_Finalized(&ended);
    if (forked) ::_exit(ended);
}

int main() {
    CHECK(std::atexit(leaves_mpi_alone) == 0);  // runs when all that started later is gone
    std::thread background{[] {
        int started = 0;
        MPI_Initialized(&started);
        CHECK(started == 0);
        auto result = ddl_init(std::getenv("DDL_OPTIONS"));
        if (result != DDL_SUCCESS) throw std::logic_error("ddl_init failed.");
        MPI_Initialized(&started);
        CHECK(started == 1);
        int level = 0;
        MPI_Query_thread(&level);
        CHECK(level == MPI_THREAD_MULTIPLE);
        MPI_Comm own;
        MPI_Comm_dup(MPI_COMM_WORLD, &own);
        int rank = 0;
        int size = 0;
        MPI_Comm_rank(own, &rank);
        MPI_Comm_size(own, &size);
        for (const DDL_Op op : {DDL_OP_SUM, DDL_OP_MIN, DDL_OP_MAX, DDL_OP_PRODUCT}) {
            std::vector<float> fused(5000, 2.0F);
            int ready = 1;
            MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, own);
            auto reduced = ddl_allreduce(fused.data(), fused.size(), DDL_TYPE_FLOAT, op);
            if (reduced != DDL_SUCCESS) throw std::logic_error("ddl_allreduce failed.");
            float expected = 2;
            for (int other = 1; other < size; ++other)
                expected = op == DDL_OP_SUM ? expected + 2 : op == DDL_OP_PRODUCT ? expected * 2 : 2;
            for (const float each : fused) CHECK(each == expected);
        }
        const ::pid_t child = ::fork();
        if (child == 0) {
            ::alarm(60);
            forked = true;
            std::exit(ddl_finalize());
        }
        int status = -1;
        CHECK(::waitpid(child, &status, 0) == child && status == 0);
        MPI_Comm_free(&own);
        ddl_finalize();
    }};
    background.join();
    int ended = 0;
    MPI_Finalized(&ended);
    CHECK(ended == 1);
}
