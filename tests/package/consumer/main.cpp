// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <cstdlib>
#include <vector>

#ifdef CONSUMER_USES_MPI
#include <mpi.h>
#endif

int main() {
#ifdef CONSUMER_USES_MPI
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized) std::abort();
#endif
    ddl::threads::run(3, [](ddl::threads& team) {
        std::vector<float> v(5, float(team.rank() + 1));
        ddl::allreduce(team, v);
        if (v[4] != 6) std::abort();
    });
}
