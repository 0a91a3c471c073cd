// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>

#include <span>

#include "oracle.hpp"

/// Sums of random values have the bits of a `float` sum in rank order that is rounded once, for each number of elements.
template <class Element, class Team>
void require_fold_in_rank_order(Team& team, std::span<const std::size_t> counts) {
    for (const std::size_t count : counts) {
        guarded<Element> in{count, [&](std::size_t i) { return random_element<Element>(team.rank(), i); }};
        guarded<Element> out{count};
        ddl::allreduce(team, in, out);
        require_bits(
            out, [&](std::size_t i) { return sum_in_rank_order<Element>(team.size(), i); }, "allreduce");
    }
}
