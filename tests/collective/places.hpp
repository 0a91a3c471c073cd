// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/layered.hpp>
#include <ddl/transport/recording.hpp>
#include <ddl/transport/threads.hpp>

#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "private_memory.hpp"
#include "under_sanitizers.hpp"

/// Long enough for any call that goes well, on any machine.
inline constexpr ddl::timeout patient{under_thread_sanitizer ? 120.0 : 60.0};

/// Places where the ranks of a test live. `run(ranks, body, limit)` runs `body(communicator)` on each.
namespace places {

struct threads {
    static constexpr const char* name = "threads";
    static constexpr bool is_slow = false;
    static constexpr bool is_repetition = false;
    template <class Body>
    static void run(int ranks, Body body, ddl::timeout limit = patient) {
        ddl::threads::run(ranks, std::move(body), limit);
    }
};

/// What is staged through windows.
struct processes {
    static constexpr const char* name = "private memory";
    static constexpr bool is_slow = false;
    static constexpr bool is_repetition = false;
    template <class Body>
    static void run(int ranks, Body body, ddl::timeout limit = patient) {
        ddl::threads::run(
            ranks,
            [&](ddl::threads& team) {
                private_memory alone{std::move(team)};
                body(alone);
            },
            limit);
    }
};

/// Messages that overtake each other as `Seed` chooses.
template <int Seed = 1>
struct messages {
    static constexpr const char* name = "recording";
    static constexpr bool is_slow = true;
    static constexpr bool is_repetition = Seed != 1;
    template <class Body>
    static void run(int ranks, Body body, ddl::timeout limit = patient) {
        // some seeds put nothing by, so that a send lasts until its receive has come
        const std::size_t eager_limit = Seed % 2 == 0 ? 0 : 4096;
        const bool marks = Seed / 2 % 2 == 0;
        ddl::recording::run(ranks, std::move(body),
                            {.seed = Seed, .delays = true, .eager_limit = eager_limit, .marks = marks, .limit = limit});
    }
};

/// Communicators without the threads that they were made in.
template <class Transport>
std::vector<std::optional<Transport>> communicators(int ranks, ddl::timeout limit) {
    std::vector<std::optional<Transport>> made(static_cast<std::size_t>(ranks));
    const auto keep = [&](Transport& one) {
        one.set_timeout(limit);
        made[static_cast<std::size_t>(one.rank())].emplace(std::move(one));
    };
    if constexpr (std::is_same_v<Transport, ddl::recording>) ddl::recording::run(ranks, keep, {.delays = true});
    else Transport::run(ranks, keep);
    return made;
}

/// Runs `body(rank)` in a thread for each rank, and throws what the first of them threw.
template <class Body>
void each_in_a_thread(int ranks, Body body) {
    std::exception_ptr first;
    std::mutex first_mutex;
    std::vector<std::thread> workers;
    for (int rank = 0; rank < ranks; ++rank)
        workers.emplace_back([&, rank] {
            try {
                body(rank);
            } catch (...) {
                std::lock_guard lock{first_mutex};
                if (!first) first = std::current_exception();
            }
        });
    for (std::thread& worker : workers) worker.join();
    if (first) std::rethrow_exception(first);
}

/// A rank that leaves with an exception takes the others with it.
template <class Ranks, class Body>
void watched(Ranks& ranks, Body& body) {
    try {
        body(ranks);
    } catch (...) {
        ranks.fail(ddl::errc::peer_lost, "a rank left with an exception");
        throw;
    }
}

/// Two levels: `Members` ranks a node over `Node`, and `Wire` between the nodes.
template <class Node, class Wire, int Members>
struct levels {
    static constexpr const char* name = "layered";
    template <class Body>
    static void run(int ranks, Body body, ddl::timeout limit = patient) {
        auto inner = communicators<Node>(ranks, limit);
        auto outer = communicators<Wire>(ranks, limit);
        each_in_a_thread(ranks, [&](int rank) {
            const auto mine = static_cast<std::size_t>(rank);
            Node node = inner[mine]->split(rank / Members, rank);
            Wire wire = outer[mine]->split(rank % Members, rank);
            ddl::layered all{node, wire};
            watched(all, body);
        });
    }
};

/// Three levels: sockets of two ranks, nodes of two sockets, and messages between the nodes.
struct three_levels {
    static constexpr const char* name = "layered thrice";
    template <class Body>
    static void run(int ranks, Body body, ddl::timeout limit = patient) {
        auto inner = communicators<ddl::threads>(ranks, limit);
        auto middle = communicators<ddl::threads>(ranks, limit);
        auto outer = communicators<ddl::recording>(ranks, limit);
        each_in_a_thread(ranks, [&](int rank) {
            const auto mine = static_cast<std::size_t>(rank);
            ddl::threads socket = inner[mine]->split(rank / 2, rank);
            ddl::threads node = middle[mine]->split(rank / 4 * 2 + rank % 2, rank);
            ddl::recording wire = outer[mine]->split(rank % 4, rank);
            ddl::layered all{socket, node, wire};
            watched(all, body);
        });
    }
};

}  // namespace places
