// SPDX-License-Identifier: Apache-2.0
#include <ddl/reduce.hpp>
#include <ddl/schedule/chain.hpp>

#include <boost/test/unit_test.hpp>

#include <span>
#include <tuple>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule = schedules<ddl::tuned, ddl::direct, ddl::ring, ddl::recursive_halving, ddl::tree, ddl::chain<3>>;
using every_place = std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>>;

template <class Schedule, class Ranks>
void sums_at(Ranks& ranks, std::size_t count, int root) {
    const auto label = labelled<Schedule>("reduce", ranks, count);
    const auto expected = sums_of_small_values(ranks.size(), count);
    const auto wanted = [&](std::size_t i) { return expected[i]; };
    const auto own = [&](std::size_t i) { return small_value(ranks.rank(), i); };
    guarded<int> data = small_values<int>(ranks.rank(), count);
    guarded<int> out{count};
    ddl::reduce<Schedule>(ranks, data, out, ddl::sum{}, root);
    if (ranks.rank() == root) require_values(out, wanted, label);
    else require(out.untouched(), label + ": the result was written where it is not wanted");
    require_values(data, own, label + ", the input");

    ddl::reduce<Schedule>(ranks, data, ddl::sum{}, root);
    if (ranks.rank() == root) require_values(data, wanted, label + ", in place");
    else require_values(data, own, label + ", the input of a rank that only gives");
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(the_root_has_the_sum_of_all, Place, every_place) {
    on_all_rank_counts<Place>([](auto& ranks) {
        for (const int root : roots(ranks.size()))
            for (const std::size_t count : lengths_at(root, ranks.size()))
                every_schedule::each([&]<class Schedule>() { sums_at<Schedule>(ranks, count, root); });
    });
}

BOOST_AUTO_TEST_CASE(only_the_root_needs_an_output) {
    const auto body = [](auto& ranks) {
        const std::vector<float> in(3000, 1.0F);
        std::vector<float> out(ranks.rank() == 1 ? in.size() : 0);
        ddl::reduce(ranks, in, out, ddl::average{}, 1);
        for (const float each : out) require(each == 1.0F, "another average");
    };
    places::threads::run(3, body);
    places::messages<1>::run(3, body);
}

BOOST_AUTO_TEST_CASE(over_levels_the_root_has_it_too) {
    const auto body = [](auto& ranks) {
        for (const int root : roots(ranks.size()))
            for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{5000}})
                schedules<ddl::direct, ddl::tree, ddl::recursive_halving>::each(
                    [&]<class Schedule>() { sums_at<Schedule>(ranks, count, root); });
    };
    places::levels<ddl::threads, ddl::threads, 2>::run(4, body);
    places::levels<ddl::threads, ddl::recording, 3>::run(6, body);
    places::three_levels::run(8, body);
}
