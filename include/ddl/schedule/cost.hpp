// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/program.hpp>

#include <cstddef>

namespace ddl {

/// What messages between two ranks cost, in seconds. A rank sends and receives at the same time.
struct link_cost {
    double message;   // from a send to its receive, however short
    double byte;      // more for each byte
    double combined;  // more for each byte of an operand
};

/// Orders of magnitude of common links. What a machine really does, a measurement says.
namespace links {
inline constexpr link_cost gigabit{30e-6, 8.5e-9, 4e-11};          // Ethernet
inline constexpr link_cost hundred_gigabit{2.5e-6, 8e-11, 4e-11};  // InfiniBand, Slingshot
inline constexpr link_cost one_host{1e-6, 1.2e-10, 4e-11};         // MPI through shared memory
}  // namespace links

/// Seconds that `program` takes for vectors of `bytes`: the sum over its rounds of what the busiest rank needs for one.
///
/// The model of Hockney (Parallel Computing 20(3), 1994) with messages that go both ways at once, and an op. It knows of no
/// congestion: a program that fills one wire from many ranks is dearer than it says.
template <program Program>
constexpr double cost(const Program& program, double bytes, const link_cost& over) noexcept {
    const double chunk = bytes / program.chunks();
    double all = 0;
    for (int round = 0; round < program.rounds(); ++round) {
        double slowest = 0;
        for (int rank = 0; rank < program.size(); ++rank) {
            int messages[2] = {};    // sent, received
            int last[2] = {-1, -1};  // peer: what goes to one rank in a round starts once
            double moved[2] = {};
            double combined = 0;
            for (int i = 0, width = program.width(rank, round); i < width; ++i) {
                const transfer t = program.at(rank, round, i);
                const int way = t.what == action::send ? 0 : 1;
                messages[way] += t.peer != last[way];
                last[way] = t.peer;
                moved[way] += t.count * chunk;
                if (t.what == action::receive_reduce) combined += t.count * chunk;
            }
            const int busier = messages[0] > messages[1] ? messages[0] : messages[1];
            const double longer = moved[0] > moved[1] ? moved[0] : moved[1];
            const double seconds = busier * over.message + longer * over.byte + combined * over.combined;
            slowest = seconds > slowest ? seconds : slowest;
        }
        all += slowest;
    }
    return all;
}

/// The longest vector, in bytes and a power of two, up to which `quick` takes no longer than `broad`: 1 if for none, 2^40 if
/// for all.
template <program Quick, program Broad>
constexpr std::size_t crossover(const Quick& quick, const Broad& broad, const link_cost& over) noexcept {
    std::size_t bytes = 1;
    const auto still_quick = [&](double longer) { return cost(quick, longer, over) <= cost(broad, longer, over); };
    while (bytes < std::size_t{1} << 40 && still_quick(2.0 * static_cast<double>(bytes))) bytes *= 2;
    return bytes;
}

}  // namespace ddl
