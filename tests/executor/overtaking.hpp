// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>
#include <ddl/transport/recording.hpp>

#include <cstdint>
#include <vector>

#include "../collective/oracle.hpp"
#include "../collective/sweep.hpp"

/// Runs `body` on `size` ranks, made of those that record, whose messages overtake each other as `seed` chooses.
template <class Ranks, class Body>
void overtaking(int size, std::uint64_t seed, Body body) {
    ddl::recording::run(size,
                        [&](ddl::recording& wire) {
                            Ranks ranks{wire.split(0, wire.rank())};
                            body(ranks);
                        },
                        {.seed = seed,
                         .delays = true,
                         .eager_limit = seed % 2 == 0 ? std::size_t{0} : std::size_t{4096},
                         .marks = seed / 2 % 2 == 0,
                         .limit = patient});
}

/// An allreduce, whose sums must be right.
template <class Schedule, class Ranks>
void sums(Ranks& ranks, std::size_t count) {
    auto values = small_values<int>(ranks.rank(), count);
    ddl::allreduce<Schedule>(ranks, values);
    const auto expected = sums_of_small_values(ranks.size(), count);
    require_values(
        values, [&](std::size_t i) { return expected[i]; }, labelled<Schedule>("allreduce", ranks, count));
}
