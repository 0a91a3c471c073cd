// SPDX-License-Identifier: Apache-2.0
// Times schedules over MPI's messages, or over a cluster, at every size. The driver beside this file starts it, and draws
// the selection from it. Its words are those of ../compare/options.hpp.
#include <ddl/transport/cluster.hpp>

#include "session.hpp"

namespace tune {
namespace {

template <class Schedule, class Checking = ddl::checked, class Transport>
compare::contender by(Transport& world, const std::string& name, const std::string& collective = "allreduce") {
    compare::contender result;
    result.name = name;
    result.prepare = [&world, collective](const compare::cell& asked) -> compare::collective_call {
        return asked.collective == collective ? call_of<Schedule, Checking>(world, asked) : compare::collective_call{};
    };
    return result;
}

bool measure_on(ddl::mpi& world, const compare::options& asked) {
    return measure_cells(asked, compare::meeting_of(world),
                         {by<ddl::recursive_doubling>(world, "recursive_doubling"),
                          by<ddl::recursive_halving>(world, "recursive_halving"), by<ddl::ring>(world, "ring"),
                          by<ddl::direct>(world, "direct"),
                          // what the link itself takes: no comparing of calls
                          by<ddl::direct, ddl::unchecked>(world, "link reduces"),
                          by<ddl::direct, ddl::unchecked>(world, "link moves", "all_gather")});
}

bool measure_on(ddl::cluster& world, const compare::options& asked) {
    if (world.nodes() < 2)
        throw std::invalid_argument(
            "all ranks are on one node, where a cluster is its shared memory; pass "
            "--transport shared_memory, or a --launcher that starts ranks on several");
    return measure_cells(
        asked, compare::meeting_of(world),
        {by<ddl::recursive_doubling>(world, "recursive_doubling"),
         by<ddl::hierarchical<ddl::direct, ddl::recursive_doubling>>(world, "hierarchical<direct, recursive_doubling>"),
         by<ddl::hierarchical<ddl::direct, ddl::recursive_halving>>(world, "hierarchical<direct, recursive_halving>")});
}

}  // namespace
}  // namespace tune

int main(int count, char** words) {
    MPI_Init(&count, &words);
    bool right = false;
    try {
        const compare::options asked = compare::parse({words + 1, words + count});
        if (!asked.several_hosts) bind_to_core(ddl::launcher::from_environment().rank);
        if (asked.transports.front() == "mpi") {
            ddl::mpi world{MPI_COMM_WORLD};
            right = tune::measure_on(world, asked);
        } else {
            ddl::cluster world{MPI_COMM_WORLD};
            right = tune::measure_on(world, asked);
        }
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "tune_messages: %s\n", failure.what());
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
