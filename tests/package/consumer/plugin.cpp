// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/transport/mpi.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

extern "C" float add_up() {
    ddl::mpi wire{MPI_COMM_WORLD};
    std::vector<float> values(5, 1);
    ddl::allreduce(wire, values);
    return values[4];
}

extern "C" void add_up_on(ddl::threads& team, std::vector<float>& values) { ddl::allreduce_async(team, values).wait(); }
