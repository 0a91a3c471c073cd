// SPDX-License-Identifier: Apache-2.0
#include <ddl/scatter.hpp>

#include <boost/test/unit_test.hpp>

#include <tuple>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule = schedules<ddl::tuned, ddl::direct, ddl::tree>;
using every_place =
    std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>, places::messages<4>>;
constexpr std::size_t some_lengths[] = {0, 1, 17, 1001, 20'003};

/// `count` elements a rank.
template <class Schedule, class Ranks>
void scatters_from(Ranks& ranks, std::size_t count, int root) {
    const auto label = labelled<Schedule>("scatter", ranks, count);
    const bool gives = ranks.rank() == root;
    const std::size_t first = count * static_cast<std::size_t>(ranks.rank());
    const auto given = [&](std::size_t i) { return small_value(root, i); };
    const guarded<int> in{gives ? count * static_cast<std::size_t>(ranks.size()) : 0, given};
    guarded<int> out{count};
    ddl::scatter<Schedule>(ranks, in, out, root);
    require_values(
        out, [&](std::size_t i) { return given(first + i); }, label);
    require_values(in, given, label + ", the input");
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(rank_r_has_block_r_of_the_root, Place, every_place) {
    on_all_rank_counts<Place>([](auto& ranks) {
        for (const int root : roots(ranks.size()))
            for (const std::size_t count : some_lengths)
                every_schedule::each([&]<class Schedule>() { scatters_from<Schedule>(ranks, count, root); });
    });
}

BOOST_AUTO_TEST_CASE(a_plan_takes_blocks_that_differ_by_one) {
    const auto body = [](auto& ranks) {
        constexpr std::size_t whole = 11;
        const auto own = ddl::block(whole, ranks.size(), ranks.rank());
        const guarded<int> in{whole, [](std::size_t i) { return i; }};
        guarded<int> out{own.count};
        using transport = std::remove_reference_t<decltype(ranks)>;
        ddl::scatter_plan<int, ddl::tree, transport> step{ranks, ranks.rank() == 1 ? in.data() : nullptr, out.data(),
                                                          whole, 1};
        step();
        require_values(
            out, [&](std::size_t i) { return own.first + i; }, "scatter");
    };
    for (const int ranks : {2, 3, 4}) {
        places::threads::run(ranks, body);
        places::messages<1>::run(ranks, body);
    }
}
