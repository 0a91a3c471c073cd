// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/schedule.hpp>
#include <ddl/schedule/tree.hpp>

namespace ddl {

template <class Schedule>
concept joins_trees = has_halves<Schedule> && owns_in_rank_order<decltype(all_gather_program<Schedule>(shape{2}))>;

template <class Schedule>
concept broadcasts = requires { Schedule::broadcast(2, 0); } || joins_trees<Schedule>;
template <class Schedule>
concept reduces = requires { Schedule::reduce(2, 0); } || joins_trees<Schedule>;
template <class Schedule>
concept gathers = requires { Schedule::gather(2, 0); };
template <class Schedule>
concept scatters = requires { Schedule::scatter(2, 0); };
template <class Schedule>
concept exchanges = requires { Schedule::all_to_all(2); };

/// The schedule's own broadcast, or a scatter down the binomial tree and the schedule's all-gather, which for long
/// messages moves `2n(p-1)/p` bytes a rank where the tree alone moves `n log2 p`.
/// Source: Barnett, Littlefield, Payne and van de Geijn, "Global combine on mesh architectures with wormhole routing", 1993.
template <broadcasts Schedule>
constexpr auto broadcast_program(int size, int root) noexcept {
    if constexpr (requires { Schedule::broadcast(size, root); }) {
        return Schedule::broadcast(size, root);
    } else {
        auto gathering = all_gather_program<Schedule>(size);
        return then(finer<tree::blocks>{tree::scatter(size, root), gathering.chunks() / size}, gathering);
    }
}

/// The schedule's own reduction, or its reduce-scatter and a gather up the binomial tree.
/// Source: Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
template <reduces Schedule>
constexpr auto reduce_program(int size, int root) noexcept {
    if constexpr (requires { Schedule::reduce(size, root); }) {
        return Schedule::reduce(size, root);
    } else {
        auto scattering = reduce_scatter_program<Schedule>(size);
        return then(scattering, finer<tree::blocks>{tree::gather(size, root), scattering.chunks() / size});
    }
}

}  // namespace ddl
