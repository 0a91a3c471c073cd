// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>

#include <boost/test/unit_test.hpp>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule =
    schedules<ddl::tuned, ddl::hierarchical<ddl::direct, ddl::ring>, ddl::hierarchical<ddl::ring, ddl::tree>,
              ddl::recursive_halving, ddl::recursive_doubling>;

/// Sums small values out of place, then in place; averages, which has a step left for the end.
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
void sweep(const std::vector<int>& all_ranks, bool with_long_ones = true) {
    for (const int ranks : all_ranks) {
        std::vector<std::vector<std::int64_t>> expected;
        for (const std::size_t count : lengths(ranks))
            if (with_long_ones || count < 10'000) expected.push_back(sums_of_small_values(ranks, count));
        Place::run(ranks, [&](auto& all) {
            for (const auto& one : expected) every_schedule::each([&]<class Schedule>() { sums<Schedule>(all, one); });
        });
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(memory_inside_and_memory_between_nodes) {
    using ddl::threads;
    sweep<places::levels<threads, threads, 1>>(rank_counts_of_nodes(1));
    sweep<places::levels<threads, threads, 2>>(rank_counts_of_nodes(2));
    sweep<places::levels<threads, threads, 3>>(rank_counts_of_nodes(3));
}

BOOST_AUTO_TEST_CASE(memory_inside_and_messages_between_nodes) {
    using ddl::threads, ddl::recording;
    sweep<places::levels<threads, recording, 2>>(rank_counts_of_nodes(2));
    sweep<places::levels<threads, recording, 3>>(rank_counts_of_nodes(3), false);
}

BOOST_AUTO_TEST_CASE(messages_on_both_levels) {
    using ddl::recording;
    sweep<places::levels<recording, recording, 2>>(rank_counts_of_nodes(2), false);
}

BOOST_AUTO_TEST_CASE(three_levels) {
    for (const int ranks : under_thread_sanitizer ? std::vector{8} : std::vector{4, 8, 12}) {
        places::three_levels::run(ranks, [](auto& all) {
            for (const std::size_t count : {std::size_t{1}, std::size_t{1001}, std::size_t{20'001}}) {
                const auto expected = sums_of_small_values(all.size(), count);
                sums<ddl::tuned>(all, expected);
                sums<ddl::hierarchical<ddl::ring, ddl::direct, ddl::recursive_doubling>>(all, expected);
                sums<ddl::hierarchical<ddl::direct, ddl::ring>>(all, expected);
            }
        });
    }
}

BOOST_AUTO_TEST_CASE(ranks_count_along_the_nodes) {
    places::levels<ddl::threads, ddl::recording, 3>::run(6, [](auto& all) {
        require(all.size() == 6 && all.node().size() == 3 && all.wire().size() == 2, "the levels have other sizes");
        require(all.rank() == all.wire().rank() * 3 + all.node().rank(), "the rank is another");
    });
}
