// SPDX-License-Identifier: Apache-2.0
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/schedule/chain.hpp>

#include <boost/test/unit_test.hpp>

#include <span>
#include <tuple>
#include <vector>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule = schedules<ddl::tuned, ddl::direct, ddl::ring, ddl::recursive_halving, ddl::tree, ddl::chain<3>>;
using every_place = std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>>;

template <class Schedule, class Ranks>
void spreads(Ranks& ranks, std::size_t count, int root) {
    guarded<int> data = small_values<int>(ranks.rank(), count);
    ddl::broadcast<Schedule>(ranks, data, root);
    require_values(
        data, [&](std::size_t i) { return small_value(root, i); }, labelled<Schedule>("broadcast", ranks, count));
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_rank_has_what_the_root_had, Place, every_place) {
    on_all_rank_counts<Place>([](auto& ranks) {
        for (const int root : roots(ranks.size()))
            for (const std::size_t count : lengths_at(root, ranks.size()))
                every_schedule::each([&]<class Schedule>() { spreads<Schedule>(ranks, count, root); });
    });
}

BOOST_AUTO_TEST_CASE(the_root_brings_a_part_to_those_whose_memory_it_can_map) {
    places::processes::run(4, [](auto& ranks) {
        for (const std::size_t count :
             {std::size_t{2048}, std::size_t{2085}, std::size_t{20'001}, std::size_t{500'003}})
            for (int private_rank = -1; private_rank < ranks.size(); ++private_rank) {
                auto* const mapped =
                    reinterpret_cast<int*>(ranks.scratch((count + 2) * sizeof(int), ddl::scratch_for::fusion));
                std::vector<int> own(count + 2);
                int* const data = ranks.rank() == private_rank ? own.data() : mapped;
                data[0] = data[count + 1] = -7;
                for (std::size_t i = 0; i < count; ++i) data[1 + i] = small_value(ranks.rank(), i);
                ddl::broadcast(ranks, std::span{data + 1, count}, 1);
                for (std::size_t i = 0; i < count; ++i) require(data[1 + i] == small_value(1, i), "another value");
                require(data[0] == -7 && data[count + 1] == -7, "it wrote beside the buffer");
                ddl::barrier(ranks);  // before the memory of the others is written anew
            }
    });
}

BOOST_AUTO_TEST_CASE(over_levels_it_goes_across_the_nodes_and_then_inside) {
    const auto body = [](auto& ranks) {
        for (int root = 0; root < ranks.size(); ++root)
            for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{5000}})
                schedules<ddl::direct, ddl::tree>::each(
                    [&]<class Schedule>() { spreads<Schedule>(ranks, count, root); });
    };
    places::levels<ddl::threads, ddl::threads, 2>::run(4, body);
    places::levels<ddl::threads, ddl::recording, 3>::run(6, body);
    places::levels<ddl::recording, ddl::recording, 2>::run(4, body);
    places::three_levels::run(8, body);
}

BOOST_AUTO_TEST_CASE(a_plan_runs_again_and_again) {
    places::messages<1>::run(3, [](auto& ranks) {
        std::vector<int> data(2);
        auto step = ddl::broadcast_init(ranks, data, 1);
        for (int i = 0; i < 3; ++i) {
            data[0] = ranks.rank() == 1 ? i : -1;
            step();
            require(data[0] == i, "another value");
        }
    });
}
