// SPDX-License-Identifier: Apache-2.0
#include <ddl/reduce_scatter.hpp>
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

using messages_alone = std::tuple<places::messages<1>, places::messages<2>, places::messages<4>>;

template <class Schedule, class Ranks>
void scatters_sums(Ranks& ranks, std::size_t count) {
    const auto label = labelled<Schedule>("reduce_scatter", ranks, count);
    const auto expected = sums_of_small_values(ranks.size(), count);
    const auto own = ddl::block(count, ranks.size(), ranks.rank());
    guarded<int> data = small_values<int>(ranks.rank(), count);
    guarded<int> out{own.count};
    ddl::reduce_scatter<Schedule>(ranks, data, out);
    require_values(
        out, [&](std::size_t i) { return expected[own.first + i]; }, label);
    require_values(
        data, [&](std::size_t i) { return small_value(ranks.rank(), i); }, label + ", the input");
    ddl::reduce_scatter<Schedule>(ranks, data);
    for (std::size_t i = 0; i < own.count; ++i)
        require(data[own.first + i] == expected[own.first + i], label + ", in place");
    require(data.intact(), label + ", in place, outside of the buffer");
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(rank_r_has_block_r_of_the_sum, Place, every_place) {
    on_all_rank_counts<Place>([](auto& ranks) {
        for (const std::size_t count : lengths(ranks.size()))
            every_schedule::each([&]<class Schedule>() { scatters_sums<Schedule>(ranks, count); });
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(short_blocks_are_accumulated_wide_and_finished_once, Place, messages_alone) {
    for (const int size : {3, 4})
        Place::run(size, [size](auto& ranks) {
            for (const std::size_t count : {1u, 5u, 17u, 1001u}) {
                const auto label = labelled<ddl::tuned>("reduce_scatter", ranks, count);
                const auto value = [](int rank, std::size_t i) { return static_cast<int>(i % 29) * 3 + rank; };
                const auto averages = [&]<class Element>(Element) {
                    std::vector<Element> data(count);
                    for (std::size_t i = 0; i < count; ++i)
                        data[i] = static_cast<Element>(static_cast<float>(value(ranks.rank(), i)));
                    const auto own = ddl::block(count, size, ranks.rank());
                    std::vector<Element> out(own.count);
                    ddl::reduce_scatter(ranks, data, out, ddl::average{});
                    for (std::size_t i = 0; i < own.count; ++i) {
                        int sum = 0;
                        for (int r = 0; r < size; ++r) sum += value(r, own.first + i);
                        const auto wanted = static_cast<Element>(static_cast<float>(sum) / static_cast<float>(size));
                        require(out[i] == wanted, label + ", another average at " + std::to_string(i));
                    }
                };
                averages(ddl::bfloat16{});
                averages(int{});
            }
        });
}

BOOST_AUTO_TEST_CASE(blocks_differ_by_one_at_most_and_the_longer_come_first) {
    BOOST_TEST(ddl::block(7, 3, 0).count == 3u);
    BOOST_TEST(ddl::block(7, 3, 1).first == 3u);
    BOOST_TEST(ddl::block(7, 3, 2).count == 2u);
    BOOST_TEST(ddl::block(1, 3, 2).count == 0u, "a rank may have nothing");
}

BOOST_AUTO_TEST_CASE(a_plan_runs_again_and_again) {
    places::messages<1>::run(3, [](auto& ranks) {
        const std::vector<int> in{1, 2, 3, 4, 5};
        std::vector<int> out(ddl::block(5, 3, ranks.rank()).count);
        auto step = ddl::reduce_scatter_init<ddl::ring>(ranks, in, out, ddl::product{});
        for (int i = 0; i < 3; ++i) {
            step();
            const int first = in[ddl::block(5, 3, ranks.rank()).first];
            require(out[0] == first * first * first, "another product");
        }
        require(step.count() == 5, "its count is that of the whole vector");
    });
}
