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

/// Common links. Rates are those of data sheets, each way; what a message takes besides is an order of magnitude. What a
/// machine really does, a measurement says: benchmarks/tune.
namespace links {
// A core of a host reads two operands and writes a result: 75 GB/s from cache, so 25 GB/s of operands.
inline constexpr double on_host = 4e-11;

// Ethernet by TCP: 94 % of the wire, the rest is headers at 1500 bytes a packet; a message costs the kernel's stack, twice.
inline constexpr link_cost gigabit{30e-6, 8.5e-9, on_host};               // IEEE 802.3ab
inline constexpr link_cost ten_gigabit{15e-6, 8.5e-10, on_host};          // IEEE 802.3ae
inline constexpr link_cost twenty_five_gigabit{10e-6, 3.4e-10, on_host};  // IEEE 802.3by

// Where the adapter reads memory by itself: the rate of 4 lanes; a message costs a switch or two, and the library.
inline constexpr link_cost hundred_gigabit{2.5e-6, 8e-11, on_host};       // InfiniBand EDR, RoCE, Omni-Path: 12.5 GB/s
inline constexpr link_cost two_hundred_gigabit{2e-6, 4e-11, on_host};     // InfiniBand HDR, Slingshot 11: 25 GB/s
inline constexpr link_cost four_hundred_gigabit{1.5e-6, 2e-11, on_host};  // InfiniBand NDR: 50 GB/s

// Ranks of one host. The first has cores to spare: MPI's messages from cache to cache, measured on a Xeon. Of the others
// every core has a rank, and a byte crosses the memory's channels four times, into a window and out of it.
inline constexpr link_cost one_host{1e-6, 1.2e-10, on_host};
// The first: Xeon 8480+, 56 cores, 8 channels of DDR5-4800. The second: EPYC 9654, 96 cores, 12 of them.
inline constexpr link_cost xeon_socket{5e-7, 4 * 56 / 307.2e9, 3 * 56 / 307.2e9};
inline constexpr link_cost epyc_socket{5e-7, 4 * 96 / 460.8e9, 3 * 96 / 460.8e9};

// GPUs, which combine at the speed of their memory. PCI Express: 16 lanes, 128 of 130 bits, 90 % of them data.
inline constexpr link_cost pcie_3{5e-6, 1 / 14.2e9, 3 / 0.9e12};     // 8 GT/s; V100, 0.9 TB/s
inline constexpr link_cost pcie_4{5e-6, 1 / 28.4e9, 3 / 1.555e12};   // 16 GT/s; A100, 1.555 TB/s
inline constexpr link_cost pcie_5{5e-6, 1 / 56.7e9, 3 / 2e12};       // 32 GT/s; H100 PCIe, 2 TB/s
inline constexpr link_cost nvlink_2{3e-6, 1 / 150e9, 3 / 0.9e12};    // V100: 300 GB/s, the half each way
inline constexpr link_cost nvlink_3{3e-6, 1 / 300e9, 3 / 1.555e12};  // A100: 600 GB/s
inline constexpr link_cost nvlink_4{3e-6, 1 / 450e9, 3 / 3.35e12};   // H100 SXM: 900 GB/s, HBM3 3.35 TB/s
inline constexpr link_cost nvlink_5{3e-6, 1 / 900e9, 3 / 8e12};      // B200: 1.8 TB/s, HBM3e 8 TB/s
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
