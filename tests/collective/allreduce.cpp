// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/schedule/chain.hpp>
#include <ddl/schedule/multi_ring.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <memory>
#include <span>
#include <tuple>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule =
    schedules<ddl::tuned, ddl::direct, ddl::ring, ddl::multi_ring<3>, ddl::recursive_doubling, ddl::recursive_halving,
              ddl::tree, ddl::chain<2>, ddl::hierarchical<ddl::direct, ddl::ring>,
              ddl::selected<ddl::at_most<256, ddl::tree>, ddl::otherwise<ddl::recursive_halving>>>;

using every_place = std::tuple<places::threads, places::processes, places::messages<1>>;

/// Sums small values out of place, then in place.
template <class Schedule, class Ranks>
void sums(Ranks& ranks, const std::vector<std::int64_t>& expected) {
    const auto label = labelled<Schedule>("allreduce", ranks, expected.size());
    const auto wanted = [&](std::size_t i) { return expected[i]; };
    guarded<int> data = small_values<int>(ranks.rank(), expected.size());
    guarded<int> out{expected.size()};
    ddl::allreduce<Schedule>(ranks, data, out);
    require_values(out, wanted, label);
    require_values(
        data, [&](std::size_t i) { return small_value(ranks.rank(), i); }, label + ", the input");
    ddl::allreduce<Schedule>(ranks, data);
    require_values(data, wanted, label + ", in place");
}

template <class Place>
void sweep(const std::vector<int>& all_ranks) {
    for (const int ranks : all_ranks) {
        std::vector<std::vector<std::int64_t>> expected;
        for (const std::size_t count : lengths(ranks)) expected.push_back(sums_of_small_values(ranks, count));
        Place::run(ranks, [&](auto& team) {
            for (const auto& one : expected) every_schedule::each([&]<class Schedule>() { sums<Schedule>(team, one); });
        });
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_rank_has_the_sum_of_all, Place, every_place) { sweep<Place>(rank_counts<Place>()); }

BOOST_AUTO_TEST_CASE(many_ranks_have_it_too) { sweep<places::threads>({16}); }

BOOST_AUTO_TEST_CASE(whatever_the_order_in_which_messages_arrive) {
    sweep<places::messages<2>>({3});
    sweep<places::messages<3>>({4});
}

BOOST_AUTO_TEST_CASE(a_buffer_is_anything_that_lies_side_by_side) {
    places::threads::run(2, [](ddl::threads& team) {
        const std::array<float, 3> one{1, 2, 3};
        float two[3] = {};
        ddl::allreduce(team, one, two);
        require(two[0] == 2 && two[2] == 6, "an array into a C array");
        std::vector<float> three(3);
        ddl::allreduce(team, std::span<const float>{one}, std::span<float>{three}, ddl::maximum{});
        require(three == std::vector<float>{1, 2, 3}, "a span into a span");
        ddl::allreduce(team, two);
        require(two[0] == 4, "a C array in place");
        ddl::allreduce(team, std::span{three}.subspan(1), ddl::sum{});
        require(three == std::vector<float>{1, 4, 6}, "a part of a vector");
    });
}

BOOST_AUTO_TEST_CASE(ranks_that_know_that_they_agree_need_not_compare) {
    const auto body = [](auto& team) {
        every_schedule::each([&]<class Schedule>() {
            for (const std::size_t count : {std::size_t{5}, std::size_t{5000}}) {
                guarded<int> data = small_values<int>(team.rank(), count);
                ddl::allreduce<Schedule, ddl::unchecked>(team, data);
                const auto expected = sums_of_small_values(team.size(), count);
                require_values(
                    data, [&](std::size_t i) { return expected[i]; }, "unchecked");
            }
        });
    };
    places::threads::run(3, body);
    places::messages<1>::run(3, body);
}
