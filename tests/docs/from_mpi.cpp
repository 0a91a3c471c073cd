// SPDX-License-Identifier: Apache-2.0
// Code of docs/from_mpi.md.
// prints: 6 3 3: 3 of rank 2
#include <ddl/all_gather.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/transport/threads.hpp>

#include <cstdio>
#include <span>
#include <vector>

namespace {
void instead(ddl::threads& ranks, double* data, std::size_t count) {
    //! [instead]
    double mine = ranks.rank() + 1;
    double all = 0;
    ddl::allreduce(ranks, std::span{&mine, 1}, std::span{&all, 1});  // one value: MPI_SUM of MPI_DOUBLE
    ddl::broadcast(ranks, std::span(data, count), 0);                // a pointer and a count

    std::vector<double> of_each(static_cast<std::size_t>(ranks.size()));
    ddl::all_gather(ranks, std::span{&mine, 1}, of_each);  // all that is received: a value of each rank

    ddl::located<double> worst{mine, ranks.rank()};  // MPI_MAXLOC of MPI_DOUBLE_INT
    ddl::allreduce(ranks, std::span{&worst, 1}, ddl::maximum_location{});
    //! [instead]
    if (ranks.rank() == 0)
        std::printf("%g %zu %g: %g of rank %d\n", all, of_each.size(), of_each.back(), worst.value,
                    static_cast<int>(worst.index));
}
}  // namespace

int main() {
    ddl::threads::run(3, [](ddl::threads& ranks) {
        double data[2] = {};
        instead(ranks, data, 2);
    });
}
