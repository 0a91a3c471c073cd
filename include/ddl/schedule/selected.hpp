// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/nearer.hpp>
#include <ddl/schedule/schedule.hpp>

#include <cstddef>

namespace ddl {

/// The ranks of a call: how many, whether all are on one host, and have a core each there, or share them and pass messages whole, so
/// that few of them pay, or only long ones; also with whom rounds begin. Where that is not known, no choice that asks for it fits.
struct company {
    int ranks = 0;
    bool near = false;
    bool own_cores = false;
    bool crowded = false;
    bool long_whole = false;
    nearer close = nearer::neighbours;

    /// Whether their rounds begin so; of several ways one is enough, and without any all are.
    template <nearer... Close>
    constexpr bool begins() const noexcept {
        return sizeof...(Close) == 0 || ((close == Close) || ...);
    }
    /// Whether they share the cores of a host, but lose little by messages that are not long.
    constexpr bool messages_cost_little() const noexcept { return near && !own_cores && !crowded; }
};

/// `Schedule` for messages of up to `Bytes` bytes.
template <std::size_t Bytes, class Schedule>
struct at_most {
    static constexpr std::size_t bytes = Bytes;
    static constexpr bool whoever = true;
    using type = Schedule;
    static constexpr bool fits(std::size_t message, company) noexcept { return message <= Bytes; }
};

/// The same if they travel between `Least` to `Most` ranks of one host, where a message costs little to begin.
template <std::size_t Bytes, int Least, int Most, class Schedule>
struct near_at_most {
    static constexpr std::size_t bytes = Bytes;
    static constexpr bool whoever = false;
    using type = Schedule;
    static constexpr bool fits(std::size_t message, company of) noexcept {
        return message <= Bytes && of.near && of.ranks >= Least && of.ranks <= Most;
    }
};

/// The same if each of them has a core of that host to itself: what waits for another keeps nobody waiting, and rounds cost little.
template <std::size_t Bytes, int Least, int Most, class Schedule>
struct own_core_at_most : near_at_most<Bytes, Least, Most, Schedule> {
    static constexpr bool fits(std::size_t message, company of) noexcept {
        return of.own_cores && near_at_most<Bytes, Least, Most, Schedule>::fits(message, of);
    }
};

/// The same if they share the cores of that host, and pass messages whole: one that waits for another waits for a core, too, so that
/// few messages pay. `Close` is with whom their rounds begin; left out, it may be anyone.
template <std::size_t Bytes, int Least, int Most, class Schedule, nearer... Close>
struct crowded_at_most : near_at_most<Bytes, Least, Most, Schedule> {
    static constexpr bool fits(std::size_t message, company of) noexcept {
        return of.crowded && of.begins<Close...>() && near_at_most<Bytes, Least, Most, Schedule>::fits(message, of);
    }
};

/// The same if they pass long messages whole, but not short ones: of those few pay, of these many.
template <std::size_t Bytes, int Least, int Most, class Schedule, nearer... Close>
struct long_whole_at_most : near_at_most<Bytes, Least, Most, Schedule> {
    static constexpr bool fits(std::size_t message, company of) noexcept {
        return of.long_whole && of.begins<Close...>() && near_at_most<Bytes, Least, Most, Schedule>::fits(message, of);
    }
};

/// `Schedule` for all that is longer.
template <class Schedule>
struct otherwise {
    static constexpr std::size_t bytes = static_cast<std::size_t>(-1);
    static constexpr bool whoever = true;
    using type = Schedule;
    static constexpr bool fits(std::size_t, company) noexcept { return true; }
};

/// A schedule for each message size: `selected<at_most<4096, recursive_doubling>, otherwise<ring>>`.
///
/// Limits count the bytes of the whole message on one rank, and grow from left to right; those of `near_at_most`,
/// `own_core_at_most`, `crowded_at_most` and `long_whole_at_most` are above the last of `at_most` before them. The first that fits is taken.
template <class... Choices>
struct selected {
    static constexpr const char* name = "selected";
};

template <class... Choices>
struct arguments_of<selected<Choices...>> {
    static constexpr bool limits_grow = [] {
        constexpr std::size_t limits[] = {Choices::bytes...};
        constexpr bool for_all[] = {Choices::whoever...};
        bool none = true;
        std::size_t last = 0;
        for (std::size_t i = 0; i < sizeof...(Choices); ++i) {
            if (!none && limits[i] <= last) return false;
            if (!for_all[i]) continue;
            none = false;
            last = limits[i];
        }
        return for_all[sizeof...(Choices) - 1] && last == static_cast<std::size_t>(-1);
    }();
    static constexpr bool fit = limits_grow && (arguments_of<typename Choices::type>::fit && ...);
    static constexpr void complain() noexcept {
        if constexpr (!limits_grow)
            static_assert(limits_grow,
                          "ddl: selected takes growing limits and ends with otherwise; "
                          "write ddl::selected<ddl::at_most<4096, ddl::tree>, ddl::otherwise<ddl::ring>>");
        else (arguments_of<typename Choices::type>::complain(), ...);
    }
};

template <class Schedule>
inline constexpr bool is_selected = false;
template <class... Choices>
inline constexpr bool is_selected<selected<Choices...>> = true;

/// A schedule chooses itself, but for one that depends on how many ranks there are: if that is known, it is what it is `among` them.
/// `selected` passes on to its first choice that fits.
template <class Schedule>
struct selection {
    template <class Use>
    static constexpr decltype(auto) make(std::size_t, company of, Use& use) {
        if constexpr (requires { Schedule::among(of.ranks, use); })
            if (of.ranks > 0) return Schedule::among(of.ranks, use);
        return use.template operator()<Schedule>();
    }
};
template <class First, class... Rest>
struct selection<selected<First, Rest...>> {
    template <class Use>
    static constexpr decltype(auto) make(std::size_t bytes, company of, Use& use) {
        if constexpr (sizeof...(Rest) > 0)
            if (!First::fits(bytes, of)) return selection<selected<Rest...>>::make(bytes, of, use);
        return selection<typename First::type>::make(bytes, of, use);
    }
};

/// Calls `use.template operator()<Schedule>()` with the schedule that `Schedule` is, or selects, for `bytes` bytes among such ranks.
template <class Schedule, class Use>
constexpr decltype(auto) with_schedule(std::size_t bytes, company of, Use&& use) {
    return selection<Schedule>::make(bytes, of, use);
}
/// The same whoever the ranks are.
template <class Schedule, class Use>
constexpr decltype(auto) with_schedule(std::size_t bytes, Use&& use) {
    return selection<Schedule>::make(bytes, company{}, use);
}

}  // namespace ddl
