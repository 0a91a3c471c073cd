// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>

namespace ddl {

template <class List>
inline constexpr int capacity_of = 0;
template <int Capacity>
inline constexpr int capacity_of<transfer_list<Capacity>> = Capacity;

/// `Few` among up to `Ranks` ranks, `Many` among more: `few_or_many<16, ring, recursive_halving>`. Both are textbook schedules
/// whose rounds are `transfer_list`s.
template <int Ranks, class Few, class Many>
struct few_or_many {
    static constexpr const char* name = "few_or_many";
    static constexpr int chunks(int size) noexcept { return size <= Ranks ? Few::chunks(size) : Many::chunks(size); }
    static constexpr int rounds(int size) noexcept { return size <= Ranks ? Few::rounds(size) : Many::rounds(size); }

    static constexpr auto round(int rank, int size, int k) noexcept {
        constexpr int of_few = capacity_of<decltype(Few::round(0, 1, 0))>;
        constexpr int of_many = capacity_of<decltype(Many::round(0, 1, 0))>;
        transfer_list<(of_few > of_many ? of_few : of_many)> transfers;
        const auto take = [&](const auto& from) {
            for (int i = 0; i < from.size(); ++i) transfers.push(from[i]);
        };
        if (size <= Ranks) take(Few::round(rank, size, k));
        else take(Many::round(rank, size, k));
        return transfers;
    }
};

static_assert(has_halves<few_or_many<16, ring, recursive_halving>>);

}  // namespace ddl
