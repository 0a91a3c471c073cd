// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_to_all.hpp>

#include <boost/test/unit_test.hpp>

#include <tuple>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule = schedules<ddl::tuned, ddl::direct, ddl::ring>;
using every_place =
    std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>, places::messages<4>>;
constexpr std::size_t some_lengths[] = {0, 1, 3, 500, 6001};

/// `each` elements from every rank to every rank.
template <class Schedule, class Ranks>
void exchanges(Ranks& ranks, std::size_t each) {
    const std::size_t count = each * static_cast<std::size_t>(ranks.size());
    const auto label = labelled<Schedule>("all_to_all", ranks, count);
    const auto wanted = exchanged_values(ranks.rank(), each);
    guarded<int> data = small_values<int>(ranks.rank(), count);
    guarded<int> out{count};
    ddl::all_to_all<Schedule>(ranks, data, out);
    require_values(out, wanted, label);
    require_values(
        data, [&](std::size_t i) { return small_value(ranks.rank(), i); }, label + ", the input");
    ddl::all_to_all<Schedule>(ranks, data);
    require_values(data, wanted, label + ", in place");
}

/// The same where the ranks of odd numbers are in place.
template <class Ranks>
void some_are_in_place(Ranks& ranks, std::size_t each) {
    const std::size_t count = each * static_cast<std::size_t>(ranks.size());
    guarded<int> data = small_values<int>(ranks.rank(), count);
    guarded<int> out{count};
    const bool in_place = ranks.rank() % 2 != 0;
    if (in_place) ddl::all_to_all(ranks, data);
    else ddl::all_to_all(ranks, data, out);
    require_values(in_place ? data : out, exchanged_values(ranks.rank(), each),
                   labelled<ddl::tuned>("all_to_all, some in place,", ranks, count));
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(block_d_of_rank_s_becomes_block_s_of_rank_d, Place, every_place) {
    on_all_rank_counts<Place>([](auto& ranks) {
        for (const std::size_t each : some_lengths)
            every_schedule::each([&]<class Schedule>() { exchanges<Schedule>(ranks, each); });
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(each_rank_may_be_in_place_or_not, Place, every_place) {
    for (const int size : {2, 3, 4})
        Place::run(size, [](auto& ranks) {
            for (const std::size_t each : some_lengths) some_are_in_place(ranks, each);
        });
}

BOOST_AUTO_TEST_CASE(a_plan_in_place_runs_again_and_again) {
    places::threads::run(3, [](auto& ranks) {
        std::vector<int> data(3);
        auto step = ddl::all_to_all_init(ranks, data);
        for (int run = 0; run < 3; ++run) {
            for (int d = 0; d < 3; ++d) data[static_cast<std::size_t>(d)] = 100 * run + 10 * ranks.rank() + d;
            step();
            for (int s = 0; s < 3; ++s)
                require(data[static_cast<std::size_t>(s)] == 100 * run + 10 * s + ranks.rank(), "another block");
        }
    });
}
