// SPDX-License-Identifier: Apache-2.0
// The collectives that move elements, over grids.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "grid_of_threads.hpp"
#include "oracle.hpp"

namespace data = boost::unit_test::data;

namespace {

constexpr std::size_t counts[] = {0, 1, 5, 1000, 5003};

/// One launch a call, none for nothing.
template <class Call>
void in_one_launch(grid_of_threads& team, std::size_t count, Call call) {
    const int before = team.launches();
    call();
    require(team.launches() - before == (count == 0 ? 0 : 1), "one launch a call, none for nothing");
}

}  // namespace

BOOST_DATA_TEST_CASE(all_gather, data::make({1, 2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        for (const std::size_t count : counts) {
            const auto own = ddl::block(count, team.size(), team.rank());
            const auto wanted = [](std::size_t i) { return small_value(7, i); };
            guarded<float> all{count};
            const guarded<float> mine{own.count, [&](std::size_t i) { return wanted(own.first + i); }};
            in_one_launch(team, count, [&] { ddl::all_gather(team, mine, all); });
            require_values(all, wanted, "beside");
            guarded<float> data{count, [&](std::size_t i) { return i - own.first < own.count ? wanted(i) : -1; }};
            in_one_launch(team, count, [&] { ddl::all_gather<ddl::direct>(team, data); });
            require_values(data, wanted, "in place");
        }
    });
}

BOOST_DATA_TEST_CASE(from_the_root_and_to_it, data::make({1, 2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        for (const std::size_t count : counts)
            for (int root = 0; root < team.size(); ++root) {
                auto data = small_values<double>(team.rank(), count);
                in_one_launch(team, count, [&] { ddl::broadcast(team, data, root); });
                require_values(
                    data, [&](std::size_t i) { return small_value(root, i); }, "broadcast");

                const std::size_t all = team.rank() == root ? count * static_cast<std::size_t>(team.size()) : 0;
                guarded<double> collected{all};
                in_one_launch(team, count, [&] { ddl::gather(team, data, collected, root); });
                require_values(
                    collected, [&](std::size_t i) { return small_value(root, i % count); }, "gather");

                const auto dealt = small_values<double>(3, all);
                in_one_launch(team, count, [&] { ddl::scatter(team, dealt, data, root); });
                const std::size_t first = count * static_cast<std::size_t>(team.rank());
                require_values(
                    data, [&](std::size_t i) { return small_value(3, first + i); }, "scatter");
            }
    });
}

BOOST_DATA_TEST_CASE(all_to_all, data::make({1, 2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        for (const std::size_t each : counts) {
            const std::size_t count = each * static_cast<std::size_t>(team.size());
            const auto wanted = exchanged_values(team.rank(), each);
            auto data = small_values<short>(team.rank(), count);
            guarded<short> out{count};
            in_one_launch(team, count, [&] { ddl::all_to_all(team, data, out); });
            require_values(out, wanted, "beside");
            in_one_launch(team, count, [&] { ddl::all_to_all(team, data); });
            require_values(data, wanted, "in place");
        }
    });
}

BOOST_AUTO_TEST_CASE(what_others_do_not_read_or_write_need_not_be_in_reach) {
    grid_of_threads::run(2, [](grid_of_threads& team) {
        int* const out_of_reach = reinterpret_cast<int*>(std::uintptr_t{64});
        std::vector<int> all{1, 2, 3};
        const auto own = ddl::block(3, 2, team.rank());
        ddl::gather_plan<int, ddl::direct, grid_of_threads>{team, all.data() + own.first,
                                                            team.rank() == 0 ? all.data() : out_of_reach, 3, 0}();
        ddl::scatter_plan<int, ddl::direct, grid_of_threads>{team, team.rank() == 0 ? all.data() : out_of_reach,
                                                             all.data() + own.first, 3, 0}();
        require(all == std::vector<int>{1, 2, 3}, "each block is where it was");
    });
}

BOOST_AUTO_TEST_CASE(ranks_that_disagree_are_told_before_anything_is_launched) {
    grid_of_threads::run(3, [](grid_of_threads& team) {
        std::vector<int> values(6, 1);
        require_error(ddl::errc::mismatch, "names root",
                      [&] { ddl::broadcast(team, values, team.rank() == 2 ? 1 : 0); });
        require_error(ddl::errc::mismatch, "calls", [&] {
            if (team.rank() == 0) ddl::all_to_all(team, values);
            else ddl::broadcast(team, values, 0);
        });
        values.resize(team.rank() == 1 ? 9 : 6, 1);
        require_error(ddl::errc::mismatch, "elements, this rank", [&] { ddl::all_to_all(team, values); });
        require(team.launches() == 0, "nothing was launched");
        values.assign(6, team.rank());
        ddl::broadcast(team, values, 2);
        require(values == std::vector<int>(6, 2), "the communicator is as good as before");
    });
}

BOOST_AUTO_TEST_CASE(a_plan_says_what_it_will_do) {
    grid_of_threads::run(2, [](grid_of_threads& team) {
        std::vector<int> values(10);
        const auto says = [](const auto& plan, const char* words) {
            const std::string line = ddl::explain(plan);
            require(line.find(words) != std::string::npos, line);
        };
        says(ddl::broadcast_init(team, values), "in one launch: every rank moves its block or share");
        says(ddl::all_to_all_init(team, values), "in one launch: every rank exchanges half of the blocks");
    });
}
