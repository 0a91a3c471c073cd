// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/schedule/multi_ring.hpp>

#include <boost/test/unit_test.hpp>

#include <tuple>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule = schedules<ddl::tuned, ddl::direct, ddl::ring, ddl::multi_ring<2>, ddl::recursive_halving,
                                 ddl::hierarchical<ddl::direct, ddl::ring>>;
using every_place =
    std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>, places::messages<4>>;

/// Element `i` of the whole is told apart from all others.
int tagged(std::size_t i) { return small_value(0, i) * 1000 + static_cast<int>(i % 1000); }

template <class Schedule, class Ranks>
void gathers_blocks(Ranks& ranks, std::size_t count) {
    const auto label = labelled<Schedule>("all_gather", ranks, count);
    const auto own = ddl::block(count, ranks.size(), ranks.rank());
    const guarded<int> in{own.count, [&](std::size_t i) { return tagged(own.first + i); }};
    guarded<int> out{count};
    ddl::all_gather<Schedule>(ranks, in, out);
    require_values(out, tagged, label);
    require_values(
        in, [&](std::size_t i) { return tagged(own.first + i); }, label + ", the input");
    guarded<int> data{count};
    for (std::size_t i = 0; i < own.count; ++i) data[own.first + i] = in[i];
    ddl::all_gather<Schedule>(ranks, data);
    require_values(data, tagged, label + ", in place");
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_rank_has_the_blocks_of_all_in_rank_order, Place, every_place) {
    on_all_rank_counts<Place>([](auto& ranks) {
        for (const std::size_t count : lengths(ranks.size()))
            every_schedule::each([&]<class Schedule>() { gathers_blocks<Schedule>(ranks, count); });
    });
}

BOOST_AUTO_TEST_CASE(values_are_moved_as_they_are) {
    // a NaN keeps its payload, a narrow type is not widened on the way
    places::messages<1>::run(3, [](auto& ranks) {
        const auto own = ddl::half::from_bits(static_cast<std::uint16_t>(0x7c01 + ranks.rank()));
        const std::vector<ddl::half> in{own};
        std::vector<ddl::half> out(3);
        ddl::all_gather(ranks, in, out);
        for (std::uint16_t r = 0; r < 3; ++r) require(out[r].bits == 0x7c01 + r, "other bits");
    });
    places::threads::run(3, [](auto& ranks) {
        const auto own = ddl::half::from_bits(static_cast<std::uint16_t>(0x7c01 + ranks.rank()));
        const std::vector<ddl::half> in{own};
        std::vector<ddl::half> out(3);
        ddl::all_gather<ddl::ring>(ranks, in, out);
        for (std::uint16_t r = 0; r < 3; ++r) require(out[r].bits == 0x7c01 + r, "other bits");
    });
}

BOOST_AUTO_TEST_CASE(a_plan_runs_again_and_again) {
    places::threads::run(3, [](auto& ranks) {
        std::vector<int> in{0};
        std::vector<int> out(3);
        auto step = ddl::all_gather_init(ranks, in, out);
        for (int i = 0; i < 3; ++i) {
            in[0] = 10 * i + ranks.rank();
            step();
            require(out == std::vector<int>{10 * i, 10 * i + 1, 10 * i + 2}, "other blocks");
        }
    });
}
