// SPDX-License-Identifier: Apache-2.0
// not under: thread
// The walks are those of allreduce_sum, which the sanitizers see.
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <tuple>

#include "few_ranks.hpp"
#include "sweep.hpp"

namespace {
using narrow = std::tuple<ddl::half, ddl::bfloat16, ddl::float8_e4m3, ddl::float8_e5m2>;
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(sums_are_made_in_float_and_rounded_once, Element, narrow) {
    // values of so few bits that a float sum of them is exact: every order gives the same bits
    const auto exact = [](int rank, std::size_t i) {
        return static_cast<Element>(random_element<ddl::float8_e5m2>(rank, i % 64 + 64));
    };
    const auto wide = folded<float>(exact, [](float a, float b) { return a + b; });
    on_few_ranks<Element>(ddl::sum{}, exact, wide);
    on_few_ranks<Element>(ddl::average{}, exact,
                          [&](int ranks, std::size_t i) { return wide(ranks, i) / static_cast<float>(ranks); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(direct_gives_the_bits_of_a_float_sum_in_rank_order, Element, narrow) {
    const auto body = [](auto& ranks) {
        for (const std::size_t count : few_lengths<Element>()) {
            guarded<Element> data{count, [&](std::size_t i) { return random_element<Element>(ranks.rank(), i); }};
            ddl::allreduce<ddl::direct>(ranks, data);
            for (std::size_t i = 0; i < count; ++i)
                require(data[i].bits == sum_in_rank_order<Element>(ranks.size(), i).bits, "other bits");
        }
    };
    places::threads::run(5, body);
    places::processes::run(5, body);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(other_schedules_reorder_the_float_sum_alone, Element, narrow) {
    using all = schedules<ddl::ring, ddl::recursive_doubling, ddl::recursive_halving>;
    const auto body = [](auto& ranks) {
        all::each([&]<class Schedule>() {
            constexpr std::size_t count = 5000;
            guarded<Element> data{count, [&](std::size_t i) { return random_element<Element>(ranks.rank(), i); }};
            ddl::allreduce<Schedule>(ranks, data);
            for (std::size_t i = 0; i < count; ++i) {
                const float sum = float_sum_in_rank_order<Element>(ranks.size(), i);
                const float slack =
                    static_cast<float>(2 * ranks.size() * ranks.size()) * 0x1p-24F;  // of sums below `size`
                const float low = static_cast<Element>(sum - slack);
                const float high = static_cast<Element>(sum + slack);
                const float got = data[i];
                require(low <= got && got <= high, "it was rounded more than once");
            }
        });
    };
    places::threads::run(5, body);
    places::messages<1>::run(5, body);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_nan_wins_here_too, Element, narrow) {
    const auto body = [](auto& ranks) {
        for (int holder = 0; holder < ranks.size(); ++holder) {
            const auto fill = [&](std::size_t) {
                return ranks.rank() == holder ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
            };
            guarded<Element> data{4, fill};
            ddl::allreduce(ranks, data, ddl::minimum{});
            for (std::size_t i = 0; i < 4; ++i) require(std::isnan(static_cast<float>(data[i])), "it was lost");
        }
    };
    places::threads::run(3, body);
    places::messages<1>::run(3, body);
}

BOOST_AUTO_TEST_CASE(the_compilers_half_is_one_too) {
    const auto sums = []<class Half>() {
        if constexpr (ddl::complete<Half>)
            on_few_ranks<Half>(ddl::sum{}, small_value,
                               folded<float>(small_value, [](float a, float b) { return a + b; }));
    };
    sums.operator()<ddl::compiler_half>();
}
