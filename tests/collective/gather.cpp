// SPDX-License-Identifier: Apache-2.0
#include <ddl/gather.hpp>

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
void gathers_at(Ranks& ranks, std::size_t count, int root) {
    const auto label = labelled<Schedule>("gather", ranks, count);
    const bool takes = ranks.rank() == root;
    const guarded<int> in = small_values<int>(ranks.rank(), count);
    guarded<int> out{takes ? count * static_cast<std::size_t>(ranks.size()) : 0};
    ddl::gather<Schedule>(ranks, in, out, root);
    require_values(
        out, [&](std::size_t i) { return small_value(static_cast<int>(i / count), i % count); }, label);
    require_values(
        in, [&](std::size_t i) { return small_value(ranks.rank(), i); }, label + ", the input");
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(the_root_has_the_blocks_of_all_in_rank_order, Place, every_place) {
    on_all_rank_counts<Place>([](auto& ranks) {
        for (const int root : roots(ranks.size()))
            for (const std::size_t count : some_lengths)
                every_schedule::each([&]<class Schedule>() { gathers_at<Schedule>(ranks, count, root); });
    });
}

BOOST_AUTO_TEST_CASE(a_plan_takes_blocks_that_differ_by_one) {
    const auto body = [](auto& ranks) {
        constexpr std::size_t whole = 11;
        const auto own = ddl::block(whole, ranks.size(), ranks.rank());
        const guarded<int> in{own.count, [&](std::size_t i) { return own.first + i; }};
        guarded<int> out{whole};
        using transport = std::remove_reference_t<decltype(ranks)>;
        ddl::gather_plan<int, ddl::tree, transport> step{ranks, in.data(), ranks.rank() == 1 ? out.data() : nullptr,
                                                         whole, 1};
        step();
        if (ranks.rank() == 1)
            require_values(
                out, [](std::size_t i) { return i; }, "gather");
        else require(out.untouched(), "gather wrote where it was not asked to");
    };
    for (const int ranks : {2, 3, 4}) {
        places::threads::run(ranks, body);
        places::messages<1>::run(ranks, body);
    }
}

BOOST_AUTO_TEST_CASE(the_root_may_give_its_own_block_in_place) {
    const auto body = [](auto& ranks) {
        std::vector<int> all(static_cast<std::size_t>(ranks.size()), -1);
        const auto mine = static_cast<std::size_t>(ranks.rank());
        all[mine] = ranks.rank();
        using transport = std::remove_reference_t<decltype(ranks)>;
        ddl::gather_plan<int, ddl::direct, transport> step{ranks, &all[mine], all.data(), all.size(), 0};
        step();
        for (int r = 0; r < ranks.size() && ranks.rank() == 0; ++r)
            require(all[static_cast<std::size_t>(r)] == r, "another block");
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
    places::messages<1>::run(3, body);
}
