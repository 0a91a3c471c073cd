// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/named.hpp>
#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/shape.hpp>

namespace ddl {

/// A schedule in its plain form: three pure functions that say what an allreduce does.
template <class Schedule>
concept textbook = requires(int rank, int size, int k) {
    { Schedule::chunks(size) } -> std::same_as<int>;
    { Schedule::rounds(size) } -> std::same_as<int>;
    { Schedule::round(rank, size, k).size() } -> std::convertible_to<int>;
    { Schedule::round(rank, size, k)[0] } -> std::convertible_to<transfer>;
};

/// A schedule that is put together from programs: `allreduce(ranks)`, or `reduce_scatter(ranks)` and `all_gather(ranks)`.
/// They take an `int`, or a `shape` if they look at how the ranks are grouped.
template <class Schedule>
concept composed = requires(const shape& ranks) {
    { Schedule::allreduce(ranks) } -> program;
} || requires(const shape& ranks) {
    { Schedule::reduce_scatter(ranks) } -> program;
    { Schedule::all_gather(ranks) } -> program;
};

/// A schedule for one message size, stateless: `textbook` or `composed`. One that is both has an allreduce of its own beside
/// its halves.
template <class Schedule>
concept schedule = textbook<Schedule> || composed<Schedule>;

/// Whether each rank can own equally many chunks, however many ranks there are.
template <class Schedule>
concept shares_chunks = requires {
    requires std::bool_constant<Schedule::chunks(2) % 2 == 0 && Schedule::chunks(3) % 3 == 0 &&
                                Schedule::chunks(5) % 5 == 0>::value;
};

/// Whether the compiler can ask a textbook schedule for its chunks.
template <class Schedule>
concept counts_chunks = !textbook<Schedule> || requires { typename std::integral_constant<int, Schedule::chunks(3)>; };

/// The schedule is a reduce-scatter followed by an all-gather.
///
/// Of a textbook schedule this is read off its chunks: where each rank can own equally many, the first half of the
/// rounds leaves rank `r` of `size` with the `r`-th block of `chunks(size) / size` chunks complete.
template <class Schedule>
concept has_halves = (textbook<Schedule> && shares_chunks<Schedule>) || requires(const shape& ranks) {
    { Schedule::reduce_scatter(ranks) } -> program;
    { Schedule::all_gather(ranks) } -> program;
};

/// Every rank holds the sum of all contributions to every chunk in the end.
template <schedule Schedule>
constexpr auto allreduce_program(const shape& ranks) noexcept {
    if constexpr (requires { Schedule::allreduce(ranks); }) return Schedule::allreduce(ranks);
    else if constexpr (textbook<Schedule>) return rounds_of<Schedule>{ranks.size(), 0, Schedule::rounds(ranks.size())};
    else return then(Schedule::reduce_scatter(ranks), Schedule::all_gather(ranks));
}

/// Each rank holds the sum of all contributions to the chunks that it owns.
template <has_halves Schedule>
constexpr auto reduce_scatter_program(const shape& ranks) noexcept {
    if constexpr (requires { Schedule::reduce_scatter(ranks); }) return Schedule::reduce_scatter(ranks);
    else return rounds_of<Schedule>{ranks.size(), 0, Schedule::rounds(ranks.size()) / 2};
}

/// Every rank holds what the owner of each chunk held.
template <has_halves Schedule>
constexpr auto all_gather_program(const shape& ranks) noexcept {
    if constexpr (requires { Schedule::all_gather(ranks); }) {
        return Schedule::all_gather(ranks);
    } else {
        const int half = Schedule::rounds(ranks.size()) / 2;
        return rounds_of<Schedule>{ranks.size(), half, Schedule::rounds(ranks.size()) - half};
    }
}

/// Neighbouring chunks.
struct chunk_range {
    int first;
    int count;
    friend constexpr bool operator==(const chunk_range&, const chunk_range&) = default;
};

/// How many ranges of chunks `rank` owns between reduce-scatter and all-gather: one, unless the program says otherwise.
template <program Program>
constexpr int owned_ranges(const Program& halves, int rank) noexcept {
    if constexpr (requires { halves.owned_ranges(rank); }) return halves.owned_ranges(rank);
    else return 1;
}

/// The `index`-th of these ranges: block `rank` of `size` equal ones, unless the program says otherwise.
template <program Program>
constexpr chunk_range owned(const Program& halves, int rank, int index = 0) noexcept {
    if constexpr (requires { halves.owned_ranges(rank); }) {
        return halves.owned(rank, index);
    } else {
        const int each = halves.chunks() / halves.size();
        return {rank * each, each};
    }
}

/// Rank `r` owns block `r`: what a program must do before its halves can be joined to those of another schedule.
template <class Program>
concept owns_in_rank_order = program<Program> && !requires(const Program p) { p.owned_ranges(0); };

/// Whether the arguments of a schedule template make sense: `fit`. If not, `complain()` is the compile error that says why.
/// Specialised beside each template that asks something of its arguments.
template <class Schedule>
struct arguments_of {
    static constexpr bool fit = true;
    static constexpr void complain() noexcept {}
};

/// The compile error where such parts of a schedule are asked whether they have halves, and cannot be.
template <class... Parts>
constexpr void complain_of_chunks() noexcept {
    static_assert(
        (counts_chunks<Parts> && ...),
        "ddl: the compiler cannot read the chunks of a schedule that this one is made of; make chunks constexpr");
}

/// The schedules that one is made of: none, unless it is specialised, as it is beside each template that takes schedules. Which of them
/// run depends on how many ranks there are, so few ranks do not show what many do. `all<Holds>` is whether all are.
template <class... Parts>
struct all_parts {
    template <template <class> class Holds>
    static constexpr bool all = (Holds<Parts>::value && ...);
};
template <class Schedule>
struct parts_of : all_parts<> {};

/// A schedule of the library, which its tests prove for numbers of ranks far beyond those that a compiler is asked for. Those of users
/// are proved in their calls.
template <class Schedule>
inline constexpr bool of_the_library = false;

/// `Schedule::name` if it has one.
template <class Schedule>
constexpr const char* schedule_name() noexcept {
    if constexpr (named<Schedule>) return Schedule::name;
    else return "user's schedule";
}

}  // namespace ddl
