// SPDX-License-Identifier: Apache-2.0
// A program of MPI that reduces memory of a GPU, whose driver is a double: the explicit form, without ddl_init and ddl_finalize.
// ranks: none
// mpi-ranks: 1 2 3
// two-nodes: 2
// cuda: a double
#include "../doubles/device.hpp"
#include "check.hpp"
#include <ddl.hpp>
#include <ddl_mpi.hpp>

int main(int argc, char** argv) {
    int provided = 0;
    int rank = 0;
    int size = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{3001}, std::size_t{600'000}}) {  // at once, and in chunks
        const device<float> values{std::vector<float>(count, static_cast<float>(rank + 1))};
        const std::vector<float> sums(count, static_cast<float>(size * (size + 1)) / 2);
        const int copies = seen().copies;
        CHECK(ddl_allreduce_mpi("", values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == DDL_SUCCESS);
        CHECK(seen().copies - copies == (count == 600'000 ? 6 : 2));
        CHECK(values.get() == sums);
        std::vector<float> host(count, static_cast<float>(rank + 1));  // of all but rank 0
        CHECK(ddl_allreduce_mpi("", rank == 0 ? values.data() : host.data(), count, MPI_FLOAT, MPI_MAX,
                                MPI_COMM_WORLD) == DDL_SUCCESS);
        CHECK((rank == 0 ? values.get() : host) == sums);
        if (rank == size - 1) seen().fails_at = 1;
        CHECK(ddl_allreduce_mpi("", values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != DDL_SUCCESS);
        seen().fails_at = 0;
    }
    const device<double> last{{2.0, 3.0}};  // what failed has left all usable
    CHECK(ddl_allreduce_mpi("", last.data(), 2, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD) == DDL_SUCCESS);
    CHECK((last.get()[0] == (size == 1 ? 2.0 : size == 2 ? 4.0 : 8.0)));
    CHECK(MPI_Finalize() == MPI_SUCCESS);
}
