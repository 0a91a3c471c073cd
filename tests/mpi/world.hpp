// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cluster.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include "../collective/require.hpp"
#include "../process/brought.hpp"

// What the programs here share: MPI from the first case to the last, and what ranks bring to a collective.

/// No case waits longer for a peer, and no program lives longer.
inline const ddl::timeout patient{120.0};
inline constexpr unsigned longest_run = 1100;

/// Starts MPI for `Level` of threads, and ends it. Ranks that failed wait for nobody.
template <int Level>
struct mpi_with_threads {
    mpi_with_threads() {
        ::alarm(longest_run);
        int level = MPI_THREAD_SINGLE;
        MPI_Init_thread(nullptr, nullptr, Level, &level);
        for (const MPI_Comm ranks : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
    }
    ~mpi_with_threads() { MPI_Finalize(); }
};

inline int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}
inline int world_size() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/// The communicator of MPI whose ranks a transport's are.
inline MPI_Comm communicator_of(ddl::mpi& ranks) { return ranks.communicator(); }
inline MPI_Comm communicator_of(ddl::cluster& ranks) { return ranks.wire().communicator(); }

/// Runs `check(ranks)` over MPI and over clusters with one rank a node, two, and all on one.
template <class Check>
void on_every_transport(Check check) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    check(wire);
    for (const int most : {1, 2, 0}) {
        ddl::cluster world{MPI_COMM_WORLD, ddl::ranks_per_node{most}, patient};
        check(world);
    }
}

template <class Element>
std::vector<Element> values_of(int rank, std::size_t count) {
    std::vector<Element> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = brought<Element>(rank, i);
    return values;
}

/// The fold of what all `size` ranks bring, in rank order, exact for integers and lines.
template <class Element, class Op>
std::vector<Element> fold_of(int size, std::size_t count, Op op) {
    std::vector<Element> result = values_of<Element>(0, count);
    for (int rank = 1; rank < size; ++rank)
        for (std::size_t i = 0; i < count; ++i) result[i] = op(result[i], brought<Element>(rank, i));
    return result;
}

/// All ranks of `ranks` hold the same bits.
template <class Element>
bool same_bits_everywhere(MPI_Comm ranks, std::span<const Element> got) {
    std::uint64_t hash[2] = {14'695'981'039'346'656'037U, 0};
    for (const std::byte each : std::as_bytes(got))
        hash[0] = (hash[0] ^ static_cast<std::uint64_t>(each)) * 1'099'511'628'211U;
    hash[1] = ~hash[0];
    std::uint64_t highest[2] = {};
    MPI_Allreduce(hash, highest, 2, MPI_UINT64_T, MPI_MAX, ranks);
    return highest[0] == ~highest[1];
}

inline bool says(const ddl::error& failure, ddl::errc code, const std::string& words) {
    return failure.code() == code && std::string(failure.what()).find(words) != std::string::npos;
}
