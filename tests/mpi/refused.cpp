// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3
// What is left of a communicator that MPI refused something while it was made: nothing.
#include <ddl/barrier.hpp>

#include "world.hpp"

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

namespace {
int refused_next = 0;
int alive = 0;

/// What a call of MPI that makes a communicator did.
int counted(int code, const MPI_Comm* made) {
    if (code == MPI_SUCCESS && *made != MPI_COMM_NULL) ++alive;
    return code;
}
bool is_refused() { return refused_next > 0 && --refused_next == 0; }
}  // namespace

// MPI's profiling interface: the program's own calls come here.
extern "C" {
int MPI_Comm_dup(MPI_Comm ranks, MPI_Comm* made) {
    return is_refused() ? MPI_ERR_OTHER : counted(PMPI_Comm_dup(ranks, made), made);
}
int MPI_Comm_idup(MPI_Comm ranks, MPI_Comm* made, MPI_Request* request) {
    if (is_refused()) return MPI_ERR_OTHER;
    const int code = PMPI_Comm_idup(ranks, made, request);
    if (code == MPI_SUCCESS) ++alive;
    return code;
}
int MPI_Comm_split(MPI_Comm ranks, int color, int key, MPI_Comm* made) {
    return is_refused() ? MPI_ERR_OTHER : counted(PMPI_Comm_split(ranks, color, key, made), made);
}
int MPI_Comm_split_type(MPI_Comm ranks, int type, int key, MPI_Info info, MPI_Comm* made) {
    return is_refused() ? MPI_ERR_OTHER : counted(PMPI_Comm_split_type(ranks, type, key, info, made), made);
}
int MPI_Comm_free(MPI_Comm* ranks) {
    --alive;
    return PMPI_Comm_free(ranks);
}
}

BOOST_AUTO_TEST_CASE(nothing_is_left_of_what_could_not_be_made) {
    {
        ddl::mpi first{MPI_COMM_WORLD, patient};  // MPI's own are made
        ddl::barrier(first);
    }
    const int before = alive;
    int failures = 0;
    for (int call = 1;; ++call) {
        refused_next = call;
        bool is_made = false;
        try {
            ddl::mpi ranks{MPI_COMM_WORLD, patient};
            ddl::mpi part = ranks.split(0, 0);
            is_made = true;
        } catch (const ddl::error& failure) {
            ++failures;
            BOOST_TEST((failure.code() == ddl::errc::system));
        }
        refused_next = 0;
        BOOST_TEST(alive == before, "refused call " << call << ": " << alive - before << " are left");
        BOOST_REQUIRE(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
        if (is_made) break;
    }
    BOOST_TEST(failures >= 4);
}
