// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/shared_memory.hpp>

#include "../measure.hpp"
#include "processes.hpp"
#include "ranks.hpp"

namespace {
ending measure_on(ddl::shared_memory node, const settings& asked, const std::vector<contender>& rivals) {
    return measure(node, asked, rivals) ? ending::right : ending::wrong;
}

/// This process is one of the ranks that a launcher started.
ending be_a_rank(const settings& asked, int size) {
    if (asked.ranks && *asked.ranks != size)
        throw usage_error("--ranks is " + std::to_string(*asked.ranks) + ", and the launcher started " +
                          std::to_string(size) + "; leave --ranks out");
    return in_mpi(asked, [&](const std::vector<contender>& rivals) { return measure_on({}, asked, rivals); });
}

ending start_ranks(const settings& asked) {
    if (asked.against_mpi)
        throw usage_error("--mpi needs ranks of MPI; start the program with mpirun -n N, N of 2 or more");
    const int size = asked.ranks.value_or(2);
    const std::string job = "allreduce_bench-" + std::to_string(::getpid());
    rank_processes ranks{size, [&](int rank) {
                             return or_refused([&] {
                                 const ddl::timeout limit = ddl::timeout_from_environment();
                                 return measure_on({job, rank, size, limit}, asked, {});
                             });
                         }};
    return ranks.wait();
}
}  // namespace

ending measure_on_shared_memory(const settings& asked) {
    const int launched = ddl::launcher::from_environment().size;
    return launched > 1 ? be_a_rank(asked, launched) : start_ranks(asked);
}
