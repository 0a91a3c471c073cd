// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/schedule.hpp>

namespace ddl {

template <class List>
inline constexpr int capacity_of = 0;
template <int Capacity>
inline constexpr int capacity_of<transfer_list<Capacity>> = Capacity;

/// Transfers that the list of a round of a textbook schedule can hold; 0 if it is no `transfer_list`.
template <class Schedule>
inline constexpr int transfers_of = 0;
template <class Schedule>
    requires requires { Schedule::round(0, 1, 0); }
inline constexpr int transfers_of<Schedule> = capacity_of<decltype(Schedule::round(0, 1, 0))>;

/// `Few` among up to `Ranks` ranks, `Many` among more: `few_or_many<16, ring, recursive_halving>`. Both are textbook schedules
/// whose rounds are `transfer_list`s, with halves or both without.
template <int Ranks, class Few, class Many>
struct few_or_many {
    static constexpr int chunks(int size) noexcept { return size <= Ranks ? Few::chunks(size) : Many::chunks(size); }
    static constexpr int rounds(int size) noexcept { return size <= Ranks ? Few::rounds(size) : Many::rounds(size); }

    static constexpr auto round(int rank, int size, int k) noexcept {
        transfer_list<(transfers_of<Few> > transfers_of<Many> ? transfers_of<Few> : transfers_of<Many>)> transfers;
        const auto take = [&](const auto& from) {
            for (int i = 0; i < from.size(); ++i) transfers.push(from[i]);
        };
        if (size <= Ranks) take(Few::round(rank, size, k));
        else take(Many::round(rank, size, k));
        return transfers;
    }
};

template <int Ranks, class Few, class Many>
struct parts_of<few_or_many<Ranks, Few, Many>> : all_parts<Few, Many> {};

template <int Ranks, class Few, class Many>
inline constexpr bool of_the_library<few_or_many<Ranks, Few, Many>> = of_the_library<Few> && of_the_library<Many>;

/// What few ranks show of its halves is taken as true of many.
template <int Ranks, class Few, class Many>
struct arguments_of<few_or_many<Ranks, Few, Many>> {
    static constexpr bool lists = transfers_of<Few> > 0 && transfers_of<Many> > 0;
    static constexpr bool fit = [] {
        if constexpr (lists) return has_halves<Few> == has_halves<Many>;
        else return false;
    }();
    static constexpr void complain() noexcept {
        if constexpr (!lists)
            static_assert(lists,
                          "ddl: few_or_many takes schedules whose rounds are transfer lists; write "
                          "ddl::few_or_many<16, ddl::ring, ddl::recursive_halving>");
        else if constexpr (!counts_chunks<Few> || !counts_chunks<Many>) complain_of_chunks<Few, Many>();
        else
            static_assert(fit,
                          "ddl: one schedule of few_or_many has halves and the other has none; write "
                          "ddl::few_or_many<16, ddl::ring, ddl::recursive_halving>");
    }
};

}  // namespace ddl
