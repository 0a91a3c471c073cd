// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>

#include <boost/test/unit_test.hpp>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

/// `x -> scale * x + shift` modulo a prime: maps whose order matters, and whose composition is exact.
struct affine {
    std::uint32_t scale;
    std::uint32_t shift;
    friend bool operator==(const affine&, const affine&) = default;
};
struct then {
    static constexpr std::uint64_t prime = 65521;
    affine operator()(const affine& first, const affine& second) const {
        return {static_cast<std::uint32_t>(std::uint64_t{first.scale} * second.scale % prime),
                static_cast<std::uint32_t>((std::uint64_t{first.shift} * second.scale + second.shift) % prime)};
    }
};
static_assert(!ddl::commutes<then>, "an op that says nothing is taken to depend on the order");

affine map_of(int rank, std::size_t i) {
    return {static_cast<std::uint32_t>(random_bits(rank, i) % 65520 + 1),
            static_cast<std::uint32_t>(random_bits(rank, i) >> 48)};
}
affine in_rank_order(int ranks, std::size_t i) {
    affine all = map_of(0, i);
    for (int rank = 1; rank < ranks; ++rank) all = then{}(all, map_of(rank, i));
    return all;
}

constexpr std::size_t some_lengths[] = {1, 17, 1001, 5000, 20'001};

template <class Schedule, class Ranks>
void composes(Ranks& ranks) {
    for (const std::size_t count : some_lengths) {
        if (ranks.size() > 5 && count > 5000) continue;
        const auto label = labelled<Schedule>("allreduce", ranks, count);
        guarded<affine> data{count, [&](std::size_t i) { return map_of(ranks.rank(), i); }};
        guarded<affine> out{count};
        ddl::allreduce<Schedule>(ranks, data, out, then{});
        require_values(
            out, [&](std::size_t i) { return in_rank_order(ranks.size(), i); }, label);
        ddl::allreduce<Schedule>(ranks, data, then{});
        require_values(
            data, [&](std::size_t i) { return in_rank_order(ranks.size(), i); }, label + ", in place");
    }
}

const auto every_schedule = [](auto& ranks) {
    schedules<ddl::tuned, ddl::direct, ddl::recursive_doubling, ddl::tree,
              ddl::hierarchical<ddl::direct, ddl::recursive_doubling>>::each([&]<class Schedule>() {
        composes<Schedule>(ranks);
    });
};

}  // namespace

BOOST_AUTO_TEST_CASE(operands_are_combined_in_rank_order) {
    for (const int ranks : rank_counts<places::threads>()) places::threads::run(ranks, every_schedule);
    for (const int ranks : {2, 3, 5, 7}) places::processes::run(ranks, every_schedule);
    for (const int ranks : {2, 3, 5, 6}) places::messages<1>::run(ranks, every_schedule);
    places::messages<2>::run(4, every_schedule);
}

BOOST_AUTO_TEST_CASE(over_levels_as_well) {
    const auto by_levels = [](auto& ranks) {
        composes<ddl::tuned>(ranks);
        composes<ddl::hierarchical<ddl::direct, ddl::recursive_doubling>>(ranks);
    };
    places::levels<ddl::threads, ddl::threads, 3>::run(6, by_levels);
    places::levels<ddl::threads, ddl::recording, 2>::run(6, by_levels);
    places::levels<ddl::recording, ddl::recording, 2>::run(6, by_levels);
    places::three_levels::run(8, [](auto& ranks) { composes<ddl::tuned>(ranks); });
}

BOOST_AUTO_TEST_CASE(a_reduction_to_any_root_keeps_it) {
    const auto body = [](auto& ranks) {
        for (int root = 0; root < ranks.size(); ++root)
            for (const std::size_t count : {std::size_t{3}, std::size_t{5000}}) {
                guarded<affine> data{count, [&](std::size_t i) { return map_of(ranks.rank(), i); }};
                ddl::reduce(ranks, data, then{}, root);
                if (ranks.rank() == root)
                    require_values(
                        data, [&](std::size_t i) { return in_rank_order(ranks.size(), i); }, "reduce");
            }
    };
    for (const int ranks : {2, 3, 5}) {
        places::threads::run(ranks, body);
        places::messages<1>::run(ranks, body);
    }
    places::levels<ddl::threads, ddl::recording, 2>::run(4, body);
}

BOOST_AUTO_TEST_CASE(a_reduce_scatter_keeps_it) {
    const auto body = [](auto& ranks) {
        constexpr std::size_t count = 5000;
        const auto own = ddl::block(count, ranks.size(), ranks.rank());
        guarded<affine> data{count, [&](std::size_t i) { return map_of(ranks.rank(), i); }};
        guarded<affine> out{own.count};
        ddl::reduce_scatter(ranks, data, out, then{});
        require_values(
            out, [&](std::size_t i) { return in_rank_order(ranks.size(), own.first + i); }, "reduce_scatter");
    };
    for (const int ranks : {2, 3, 5}) {
        places::threads::run(ranks, body);
        places::processes::run(ranks, body);
        places::messages<1>::run(ranks, body);
    }
}
