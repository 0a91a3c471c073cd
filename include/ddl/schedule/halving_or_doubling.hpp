// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/selected.hpp>

#include <bit>
#include <concepts>
#include <cstddef>

namespace ddl {

/// `recursive_halving` among a power of two of ranks, `recursive_doubling` among others: for vectors that are neither short nor
/// long, for what halving saves of their bytes costs other numbers of ranks more messages.
///
/// Cost and order: those of the one that it is.
struct halving_or_doubling {
    static constexpr const char* name = "halving_or_doubling";

    static constexpr bool halves(int size) noexcept { return std::has_single_bit(static_cast<unsigned>(size)); }

    struct either {
        rounds_of<recursive_halving> halving;
        rounds_of<recursive_doubling> doubling;
        constexpr int size() const noexcept { return halving.ranks; }
        constexpr int chunks() const noexcept { return halves(size()) ? halving.chunks() : doubling.chunks(); }
        constexpr int rounds() const noexcept { return halves(size()) ? halving.rounds() : doubling.rounds(); }
        constexpr int width(int rank, int round) const noexcept {
            return halves(size()) ? halving.width(rank, round) : doubling.width(rank, round);
        }
        constexpr transfer at(int rank, int round, int index) const noexcept {
            return halves(size()) ? halving.at(rank, round, index) : doubling.at(rank, round, index);
        }
    };
    static constexpr either allreduce(int size) noexcept {
        return {{size, 0, recursive_halving::rounds(size)}, {size, 0, recursive_doubling::rounds(size)}};
    }
};
static_assert(schedule<halving_or_doubling> && !has_halves<halving_or_doubling>);

/// As `with_schedule`, with the one of both that it is among `ranks` ranks.
template <class Schedule, class Use>
constexpr decltype(auto) with_schedule(std::size_t bytes, int ranks, Use&& use) {
    return with_schedule<Schedule>(bytes, [&]<class Chosen>() -> decltype(auto) {
        if constexpr (std::same_as<Chosen, halving_or_doubling>)
            return halving_or_doubling::halves(ranks) ? use.template operator()<recursive_halving>()
                                                      : use.template operator()<recursive_doubling>();
        else return use.template operator()<Chosen>();
    });
}

}  // namespace ddl
