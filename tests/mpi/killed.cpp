// SPDX-License-Identifier: Apache-2.0
// ranks: 2 4 6
// mpirun: --enable-recovery
// prints: all survivors were told of all losses
#include <ddl/allreduce.hpp>

#include <boost/test/results_collector.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "world.hpp"

// Ranks that kill themselves in the middle of a stream of collectives, one after the other, each in a communicator of
// those that are left. MPI itself says nothing of it; a launcher that lets the others live is asked for above.

namespace {
const ddl::timeout limit{2.0};
/// The limit runs once for the rank that waits for the dead one, and once for a rank that waits for that rank; the rest is
/// for a machine that does other things too.
constexpr double soon = 60;

/// MPI for all cases. It cannot be ended when ranks are lost: survivors agree on a verdict, and just go.
struct mpi_of_survivors {
    mpi_of_survivors() {
        ::alarm(500);
        int level = MPI_THREAD_SINGLE;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
        for (const MPI_Comm ranks : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
    }
    ~mpi_of_survivors() {
        namespace test = boost::unit_test;
        int good = test::results_collector.results(test::framework::master_test_suite().p_id).passed() ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, survivors);
        int rank = 0;
        MPI_Comm_rank(survivors, &rank);
        if (rank == 0)
            std::puts(good != 0 ? "all survivors were told of all losses"
                                : "a survivor was told nothing, or the wrong thing");
        std::fflush(stdout);
        std::_Exit(good != 0 ? 0 : 1);
    }
    static inline MPI_Comm survivors = MPI_COMM_NULL;
};
BOOST_TEST_GLOBAL_FIXTURE(mpi_of_survivors);

/// The ranks that live before a loss, and which of them is lost.
struct loss {
    MPI_Comm ranks;
    int victim;  // in `ranks`
};

/// `ranks` without its `victim`, made while all live.
MPI_Comm without(MPI_Comm ranks, int victim) {
    if (ranks == MPI_COMM_NULL) return MPI_COMM_NULL;
    int rank = 0;
    MPI_Comm rest = MPI_COMM_NULL;
    MPI_Comm_rank(ranks, &rank);
    MPI_Comm_split(ranks, rank == victim ? MPI_UNDEFINED : 0, rank, &rest);
    return rest;
}

int size_of(MPI_Comm ranks) {
    int size = 0;
    if (ranks != MPI_COMM_NULL) MPI_Comm_size(ranks, &size);
    return size;
}

/// Reduces vectors of all kinds of lengths until a call fails. The victim does not survive its twentieth.
template <class Transport>
void reduce_until_one_is_lost(Transport& ranks, int victim) {
    constexpr std::size_t lengths[] = {10, 3000, 200'000};
    std::vector<std::vector<float>> in;
    for (const std::size_t count : lengths) in.push_back(values_of<float>(ranks.rank(), count));
    std::vector<float> out(lengths[2]);
    double before = 0;
    const ddl::error failure = error_of([&] {
        for (std::size_t turn = 0;; ++turn) {
            if (turn == 20 && ranks.rank() == victim) ::raise(SIGKILL);
            before = ddl::now();
            const auto& values = in[turn % 3];
            ddl::allreduce(ranks, values, std::span{out}.first(values.size()));
        }
    });
    if (ranks.rank() == victim) ::raise(SIGKILL);  // a call failed before, on a slow machine; what follows is not its
    const double waited = ddl::now() - before;
    BOOST_TEST(waited < soon, Transport::name << " with " << ranks.size() << " ranks: told after " << waited << " s");
    const auto code = failure.code();
    BOOST_TEST((code == ddl::errc::timeout || code == ddl::errc::peer_lost || code == ddl::errc::system ||
                code == ddl::errc::broken),
               failure.what());
    for (std::size_t i = 0; i < 3; ++i)
        BOOST_TEST((in[i] == values_of<float>(ranks.rank(), lengths[i])), "its input is as it was");
    const ddl::error later = error_of([&] { ddl::allreduce(ranks, out); });
    BOOST_TEST((later.code() == ddl::errc::broken), later.what());
}
}  // namespace

BOOST_AUTO_TEST_CASE(are_a_failure_in_time_for_all_who_survive) {
    // every communicator is made while all ranks live
    std::vector<loss> losses;
    MPI_Comm left = MPI_COMM_WORLD;
    for (const int fraction : {1, 2, 0, 3}) {  // from the last rank to the first
        const int size = size_of(left);
        int agreed = size;
        MPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (agreed < 2) break;
        const int victim = std::min(agreed - 1, agreed * fraction / 3);
        losses.push_back({left, victim});
        left = without(left, victim);
    }
    mpi_of_survivors::survivors = left;
    std::vector<ddl::mpi> wires;
    std::vector<ddl::cluster> clusters;
    for (std::size_t i = 0; i < losses.size(); ++i) {
        if (losses[i].ranks == MPI_COMM_NULL) continue;
        if (i == 0) wires.emplace_back(losses[i].ranks, limit);
        else clusters.emplace_back(losses[i].ranks, ddl::ranks_per_node{i == 3 ? 0 : 2}, limit);
    }
    reduce_until_one_is_lost(wires[0], losses[0].victim);
    for (std::size_t i = 1; i < losses.size(); ++i) reduce_until_one_is_lost(clusters[i - 1], losses[i].victim);
}
