// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/schedule.hpp>

#include <cstdint>

namespace ddl {

/// How the chunks of a group's schedule and those of the schedule across groups cut the same buffer.
///
/// The buffer has as many slices as the largest group has ranks. Rank `i` of a group of `q` carries slices
/// `[slices * i / q, slices * (i + 1) / q)` outward, so all ranks carry something, and equal groups equal parts. A slice
/// holds `inner * outer` chunks: a chunk inside the group is `outer` of them, a chunk across the groups `inner`.
struct slicing {
    int slices;
    int inner;
    int outer;
    constexpr int chunks() const noexcept { return slices * inner * outer; }
    constexpr int first(int position, int group_size) const noexcept { return slices * position / group_size; }
    constexpr int carried(int position, int group_size) const noexcept {
        return first(position + 1, group_size) - first(position, group_size);
    }
    constexpr int carrier(int slice, int group_size) const noexcept { return ((slice + 1) * group_size - 1) / slices; }
};

/// The reduce-scatter (or, mirrored, the all-gather) of `Inner` in every group at once.
template <class Inner>
struct inside_groups {
    shape ranks;
    slicing cut;
    constexpr int size() const noexcept { return ranks.size(); }
    constexpr int chunks() const noexcept { return cut.chunks(); }
    constexpr int rounds() const noexcept {
        int most = 0;
        for (int g = 0; g < ranks.groups(); ++g) {
            const int needed = half(g).rounds();
            most = needed > most ? needed : most;
        }
        return most;
    }
    constexpr int width(int rank, int round) const noexcept {
        const int group = ranks.group_of(rank);
        return round < half(group).rounds() ? half(group).width(rank - ranks.first(group), round) : 0;
    }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        const int group = ranks.group_of(rank);
        const transfer t = half(group).at(rank - ranks.first(group), round, index);
        const int begin = place(t.chunk, group);
        return {t.what, t.peer + ranks.first(group), begin, place(t.chunk + t.count, group) - begin};
    }

private:
    constexpr auto half(int group) const noexcept { return reduce_scatter_program<Inner>(ranks.group_size(group)); }
    /// Where chunk `chunk` of the group's own schedule begins among the chunks of all.
    constexpr int place(int chunk, int group) const noexcept {
        const int members = ranks.group_size(group);
        const int owner = chunk / cut.inner;
        const int part = chunk % cut.inner;
        const int before = cut.first(owner, members) * cut.inner * cut.outer;
        return part == 0 ? before : before + part * cut.carried(owner, members) * cut.outer;
    }
};

/// `Program` between the groups, for each slice among the ranks that carry it.
template <class Program>
struct across_groups {
    shape ranks;
    slicing cut;
    Program program;
    constexpr int size() const noexcept { return ranks.size(); }
    constexpr int chunks() const noexcept { return cut.chunks(); }
    constexpr int rounds() const noexcept { return program.rounds(); }
    constexpr int width(int rank, int round) const noexcept {
        const int group = ranks.group_of(rank);
        const int carried = cut.carried(rank - ranks.first(group), ranks.group_size(group));
        return carried * program.width(group, round);
    }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        const int group = ranks.group_of(rank);
        const int each = program.width(group, round);
        const int slice = cut.first(rank - ranks.first(group), ranks.group_size(group)) + index / each;
        const transfer t = program.at(group, round, index % each);
        const int peer = ranks.first(t.peer) + cut.carrier(slice, ranks.group_size(t.peer));
        return {t.what, peer, (slice * cut.outer + t.chunk) * cut.inner, t.count * cut.inner};
    }
    /// What a rank owns when `program` is a reduce-scatter: in each slice that it carries, the chunks of its group.
    constexpr int owned_ranges(int rank) const noexcept {
        const int group = ranks.group_of(rank);
        return cut.carried(rank - ranks.first(group), ranks.group_size(group)) * ddl::owned_ranges(program, group);
    }
    constexpr chunk_range owned(int rank, int index) const noexcept {
        const int group = ranks.group_of(rank);
        const int each = ddl::owned_ranges(program, group);
        const int slice = cut.first(rank - ranks.first(group), ranks.group_size(group)) + index / each;
        const chunk_range r = ddl::owned(program, group, index % each);
        return {(slice * cut.outer + r.first) * cut.inner, r.count * cut.inner};
    }
};

/// Two programs of which one knows what is owned in between: `owner` is the one across the groups.
template <program Before, program After, program Owner>
struct owning_sequence : sequence<Before, After> {
    Owner owner;
    constexpr int owned_ranges(int rank) const noexcept { return owner.owned_ranges(rank); }
    constexpr chunk_range owned(int rank, int index) const noexcept { return owner.owned(rank, index); }
};

template <class Inner, class... Outer>
struct hierarchical;

/// Several levels are a hierarchy, one level is that level's schedule.
template <class... Levels>
struct levels_of {
    using schedule = hierarchical<Levels...>;
};
template <class Only>
struct levels_of<Only> {
    using schedule = Only;
};

/// Levels of groups: `Inner` inside each group, then the rest across groups, and back: any depth, innermost first.
///
/// Each group reduce-scatters, so that every rank of it carries its share outward; across groups the ranks that hold the
/// same share run the outer schedule; then each group all-gathers. Groups may be uneven. The grouping comes from the
/// machine, or is given by a `ddl::shape`; a flat number of ranks is cut into groups of about equal size and number.
///
/// Cost, `q` ranks a group and `m` groups: the steps of both; `2n(q-1)/q` bytes a rank inside and `2n(m-1)/(mq)`
/// outside, if the schedules meet their bounds.
/// Order: keeps rank order if all its schedules do.
/// Source: Cho et al., "PowerAI DDL", arXiv 1708.02188; Cho et al., "BlueConnect", MLSys 2019.
template <class Inner, class... Outer>
struct hierarchical {
    static constexpr const char* name = "hierarchical";
    using inner = Inner;
    using outer = typename levels_of<Outer...>::schedule;
    static constexpr int levels = 1 + static_cast<int>(sizeof...(Outer));

    static constexpr auto allreduce(const shape& ranks) noexcept {
        const shape grouped = ranks.with_levels(levels);
        auto between = allreduce_program<outer>(grouped.outer());
        auto [down, across] = pieces(grouped, between);
        return then(then(down, across), mirror<inside_groups<Inner>>{down});
    }
    static constexpr auto reduce_scatter(const shape& ranks) noexcept
        requires has_halves<outer>
    {
        const shape grouped = ranks.with_levels(levels);
        auto [down, across] = pieces(grouped, reduce_scatter_program<outer>(grouped.outer()));
        return owning_sequence<decltype(down), decltype(across), decltype(across)>{{down, across}, across};
    }
    static constexpr auto all_gather(const shape& ranks) noexcept
        requires has_halves<outer>
    {
        auto forward = reduce_scatter(ranks);
        return owning_mirror<decltype(forward)>{{forward}};
    }

    /// What the levels were told at run time, where they were.
    static std::uint32_t fingerprint() noexcept
        requires requires { outer::fingerprint(); }
    {
        return outer::fingerprint();
    }

    /// The part that crosses groups, for transports that run the inner levels by other means.
    static constexpr auto across(const shape& ranks) noexcept {
        const shape grouped = ranks.with_levels(levels);
        return pieces(grouped, allreduce_program<outer>(grouped.outer())).across;
    }

private:
    template <class Forward>
    struct owning_mirror : mirror<Forward> {
        constexpr int owned_ranges(int rank) const noexcept { return this->forward.owned_ranges(rank); }
        constexpr chunk_range owned(int rank, int index) const noexcept { return this->forward.owned(rank, index); }
    };
    template <class Between>
    struct parts {
        inside_groups<Inner> down;
        across_groups<Between> across;
    };
    template <class Between>
    static constexpr parts<Between> pieces(const shape& ranks, const Between& between) noexcept {
        const int largest = ranks.largest_group();
        const slicing cut{largest, reduce_scatter_program<Inner>(largest).chunks() / largest, between.chunks()};
        return {{ranks, cut}, {ranks, cut, between}};
    }
};

template <class... Levels>
struct parts_of<hierarchical<Levels...>> : all_parts<Levels...> {};

template <class... Levels>
inline constexpr bool of_the_library<hierarchical<Levels...>> = (of_the_library<Levels> && ...);

/// Can be an inner level: made of halves, between which rank `r` owns block `r`.
template <class Schedule>
concept nests = has_halves<Schedule> && owns_in_rank_order<decltype(reduce_scatter_program<Schedule>(shape{2}))>;

template <class Inner, class... Outer>
struct arguments_of<hierarchical<Inner, Outer...>> {
    static constexpr bool fit = [] {
        if constexpr (sizeof...(Outer) == 0 || !arguments_of<Inner>::fit) return false;
        else if constexpr (!nests<Inner>) return false;
        else return arguments_of<typename levels_of<Outer...>::schedule>::fit;
    }();
    static constexpr void complain() noexcept {
        if constexpr (sizeof...(Outer) == 0)
            static_assert(
                sizeof...(Outer) > 0,
                "ddl: hierarchical needs two levels or more; write ddl::hierarchical<ddl::direct, ddl::ring>");
        else if constexpr (!arguments_of<Inner>::fit) arguments_of<Inner>::complain();
        else if constexpr (!counts_chunks<Inner>) complain_of_chunks<Inner>();
        else if constexpr (!has_halves<Inner>)
            static_assert(has_halves<Inner>,
                          "ddl: the inner levels of hierarchical must be made of halves; "
                          "write ddl::direct, ddl::ring or ddl::recursive_halving");
        else if constexpr (!nests<Inner>)
            static_assert(nests<Inner>,
                          "ddl: a hierarchy cannot be an inner level of another; "
                          "write all levels in one list, innermost first");
        else arguments_of<typename levels_of<Outer...>::schedule>::complain();
    }
};

}  // namespace ddl
