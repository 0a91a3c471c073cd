// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/schedule.hpp>

#include <cstddef>

namespace ddl {

/// `Schedule` for messages of up to `Bytes` bytes.
template <std::size_t Bytes, class Schedule>
struct at_most {
    static constexpr std::size_t bytes = Bytes;
    using type = Schedule;
};

/// `Schedule` for all that is longer.
template <class Schedule>
struct otherwise {
    static constexpr std::size_t bytes = static_cast<std::size_t>(-1);
    using type = Schedule;
};

/// A schedule for each message size: `selected<at_most<4096, recursive_doubling>, otherwise<ring>>`.
///
/// Limits grow from left to right and count the bytes of the whole message on one rank. The first that fits is taken.
template <class... Choices>
struct selected {
    static constexpr const char* name = "selected";
};

template <class... Choices>
struct arguments_of<selected<Choices...>> {
    static constexpr bool limits_grow = [] {
        constexpr std::size_t limits[] = {Choices::bytes...};
        for (std::size_t i = 1; i < sizeof...(Choices); ++i)
            if (limits[i] <= limits[i - 1]) return false;
        return limits[sizeof...(Choices) - 1] == static_cast<std::size_t>(-1);
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

/// A schedule chooses itself; `selected` passes on to its first choice that fits.
template <class Schedule>
struct selection {
    template <class Use>
    static constexpr decltype(auto) make(std::size_t, Use& use) {
        return use.template operator()<Schedule>();
    }
};
template <class First, class... Rest>
struct selection<selected<First, Rest...>> {
    template <class Use>
    static constexpr decltype(auto) make(std::size_t bytes, Use& use) {
        if constexpr (sizeof...(Rest) > 0)
            if (bytes > First::bytes) return selection<selected<Rest...>>::make(bytes, use);
        return selection<typename First::type>::make(bytes, use);
    }
};

/// Calls `use.template operator()<Schedule>()` with the schedule that `Schedule` is, or selects, for `bytes` bytes.
template <class Schedule, class Use>
constexpr decltype(auto) with_schedule(std::size_t bytes, Use&& use) {
    return selection<Schedule>::make(bytes, use);
}

}  // namespace ddl
