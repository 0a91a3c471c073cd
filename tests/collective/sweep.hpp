// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/schedule.hpp>

#include <string>
#include <vector>

#include "places.hpp"

/// Numbers of ranks: all small ones, powers of two among them and their neighbours; less where it is slow.
template <class Place>
std::vector<int> rank_counts() {
    if (Place::is_repetition) return {3, 4, 6};
    if (under_thread_sanitizer) return {1, 2, 3, 5};
    if (under_address_sanitizer) return {1, 2, 3, 4, 7};
    if (Place::is_slow) return {1, 2, 3, 4, 5, 7};
    return {1, 2, 3, 4, 5, 6, 7, 8, 9};
}
/// Multiples of the ranks of a node.
inline std::vector<int> rank_counts_of_nodes(int members) {
    if (under_thread_sanitizer) return {2 * members};
    return {members, 2 * members, 3 * members};
}

/// Lengths of a vector of 4-byte elements: none, fewer than ranks, one each, uneven, longer than what travels with a
/// contract, and longer than several windows.
inline std::vector<std::size_t> lengths(int ranks) {
    const auto p = static_cast<std::size_t>(ranks);
    std::vector<std::size_t> all{0, 1, p, 17, 1001, 2500};
    if (p > 2) all.insert(all.begin() + 2, p - 1);
    if (ranks < (under_a_sanitizer ? 4 : 6)) all.push_back(100'003);
    return all;
}

template <class... Schedules>
struct schedules {
    /// Calls `use.template operator()<Schedule>()` for each.
    template <class Use>
    static void each(Use use) {
        (use.template operator()<Schedules>(), ...);
    }
};

/// Which call of a sweep went wrong.
template <class Schedule, class Ranks>
std::string labelled(const char* what, Ranks& ranks, std::size_t count) {
    std::string label = std::string(Ranks::name) + ", " + what + " of " + std::to_string(count) + " by ";
    if constexpr (requires { Schedule::name; }) label += Schedule::name;
    return label + ", rank " + std::to_string(ranks.rank()) + " of " + std::to_string(ranks.size());
}

/// Runs `body(communicator)` on every number of ranks of a place.
template <class Place, class Body>
void on_all_rank_counts(Body body) {
    for (const int ranks : rank_counts<Place>()) Place::run(ranks, body);
}

/// Roots of a rooted collective: the ends and the middle.
inline std::vector<int> roots(int ranks) {
    std::vector<int> all{0};
    if (ranks > 2) all.push_back(ranks / 2);
    if (ranks > 1) all.push_back(ranks - 1);
    return all;
}

/// Lengths at a root: all at the last, and few at the others, where the way is the same.
inline std::vector<std::size_t> lengths_at(int root, int ranks) {
    return root == ranks - 1 ? lengths(ranks) : std::vector<std::size_t>{1, 17, 2500};
}
