// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>

#include <bit>

namespace ddl {

/// `recursive_halving` among a power of two of ranks, `direct` among up to `Few` others, `Many` among more:
/// `halving_direct_or<3, recursive_doubling>`. For vectors that are neither short nor long, for what halving saves of their bytes
/// costs other numbers of ranks more messages. `Many` is a textbook schedule.
///
/// Cost: that of the one that it is.
/// Order: rotates, as halving does.
template <int Few, class Many>
struct halving_direct_or {
    static constexpr const char* name = "halving_direct_or";

    /// Calls `use.template operator()<Schedule>()` with what it is among `ranks` ranks.
    template <class Use>
    static constexpr decltype(auto) among(int ranks, Use&& use) {
        if (std::has_single_bit(static_cast<unsigned>(ranks))) return use.template operator()<recursive_halving>();
        if (ranks <= Few) return use.template operator()<direct>();
        return use.template operator()<Many>();
    }

    struct program {
        int ranks;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept {
            return as_chosen([](const auto& chosen) { return chosen.chunks(); });
        }
        constexpr int rounds() const noexcept {
            return as_chosen([](const auto& chosen) { return chosen.rounds(); });
        }
        constexpr int width(int rank, int round) const noexcept {
            return as_chosen([=](const auto& chosen) { return chosen.width(rank, round); });
        }
        constexpr transfer at(int rank, int round, int index) const noexcept {
            return as_chosen([=](const auto& chosen) { return chosen.at(rank, round, index); });
        }

    private:
        template <class Use>
        constexpr auto as_chosen(Use use) const noexcept {
            return among(ranks, [&]<class Schedule>() { return use(allreduce_program<Schedule>(ranks)); });
        }
    };
    static constexpr program allreduce(int size) noexcept { return {size}; }
};
static_assert(schedule<halving_direct_or<3, recursive_doubling>> &&
              !has_halves<halving_direct_or<3, recursive_doubling>>);

template <int Few, class Many>
struct parts_of<halving_direct_or<Few, Many>> : all_parts<recursive_halving, direct, Many> {};

template <int Few, class Many>
inline constexpr bool of_the_library<halving_direct_or<Few, Many>> = of_the_library<Many>;

template <int Few, class Many>
struct arguments_of<halving_direct_or<Few, Many>> {
    static constexpr bool fit = textbook<Many>;
    static constexpr void complain() noexcept {
        static_assert(fit,
                      "ddl: halving_direct_or takes a textbook schedule for many ranks; write "
                      "ddl::halving_direct_or<3, ddl::recursive_doubling>");
    }
};

}  // namespace ddl
