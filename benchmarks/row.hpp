// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Microseconds of many calls. Each call took as long as it did on its slowest rank.
struct spread {
    double minimum = 0;
    double median = 0;
    double maximum = 0;
};

inline spread spread_of_seconds(std::vector<double> seconds) {
    if (seconds.empty()) return {};
    std::sort(seconds.begin(), seconds.end());
    const std::size_t middle = seconds.size() / 2;
    const double median = seconds.size() % 2 != 0 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
    return {1e6 * seconds.front(), 1e6 * median, 1e6 * seconds.back()};
}

/// What was found of one kind of call.
struct figures {
    std::size_t calls = 0;
    spread microseconds;
    double algorithm_bandwidth = 0;  // GB/s: the bytes of the vector over the median time
    double bus_bandwidth = 0;        // GB/s: times 2(p-1)/p, what each rank must send and receive at least
    std::size_t wrong = 0;           // elements, over all calls and ranks, warm-up included
};

inline figures figures_of(std::vector<double> seconds, std::size_t wrong, std::size_t bytes, int ranks) {
    figures found;
    found.calls = seconds.size();
    found.microseconds = spread_of_seconds(std::move(seconds));
    found.algorithm_bandwidth = static_cast<double>(bytes) / (1e3 * found.microseconds.median);
    found.bus_bandwidth = found.algorithm_bandwidth * 2 * (ranks - 1) / ranks;
    found.wrong = wrong;
    return found;
}

/// One line of the table: a size, where the buffers begin, and whose allreduce it is.
struct row {
    std::size_t bytes = 0;
    std::size_t count = 0;
    std::size_t offset = 0;
    std::string by;
    std::string explanation;
    spread barrier;  // taken just before each of the calls: it tells in which state the machine was
    std::optional<figures> out_of_place;
    std::optional<figures> in_place;

    std::size_t wrong() const { return (out_of_place ? out_of_place->wrong : 0) + (in_place ? in_place->wrong : 0); }
};
