// SPDX-License-Identifier: Apache-2.0
// not under: address thread
#include <ddl/allreduce.hpp>
#include <ddl/schedule/multi_ring.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>

#include "oracle.hpp"
#include "sweep.hpp"

namespace {

using every_schedule = schedules<ddl::tuned, ddl::direct, ddl::ring, ddl::multi_ring<2>, ddl::recursive_doubling,
                                 ddl::recursive_halving, ddl::tree, ddl::hierarchical<ddl::direct, ddl::ring>>;

/// Values whose sum depends on the order of its additions in nearly every element.
guarded<float> wild_values(int rank, std::size_t count) {
    return {count, [rank](std::size_t i) {
                return random_value<float>(rank, i) * static_cast<float>(1U << (random_bits(rank + 50, i) % 20));
            }};
}

/// Sums by `Schedule`, in two runs of a place; all ranks of both must have the same bits.
template <class Schedule, class First, class Second>
void same_everywhere(int size) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{3001}, std::size_t{50'001}}) {
        std::vector<float> reference;
        const auto sum_of = [&](auto& ranks) {
            const auto in = wild_values(ranks.rank(), count);
            guarded<float> out{count};
            ddl::allreduce<Schedule>(ranks, in, out);
            return out;
        };
        First::run(size, [&](auto& ranks) {
            const auto out = sum_of(ranks);
            if (ranks.rank() == size - 1) reference.assign(out.data(), out.data() + count);
        });
        Second::run(size, [&](auto& ranks) {
            for (int again = 0; again < 2; ++again) {
                const auto out = sum_of(ranks);
                require(std::memcmp(out.data(), reference.data(), count * sizeof(float)) == 0,
                        labelled<Schedule>("allreduce", ranks, count) + ": other bits");
            }
        });
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_rank_and_every_run_has_the_same_bits) {
    every_schedule::each([]<class Schedule>() {
        for (const int size : {3, 4, 7}) {
            same_everywhere<Schedule, places::threads, places::threads>(size);
            same_everywhere<Schedule, places::processes, places::processes>(size);
        }
    });
}

BOOST_AUTO_TEST_CASE(in_whatever_order_messages_arrive) {
    every_schedule::each([]<class Schedule>() {
        for (const int size : {3, 4}) same_everywhere<Schedule, places::messages<1>, places::messages<2>>(size);
    });
}

BOOST_AUTO_TEST_CASE(staged_or_mapped) { same_everywhere<ddl::direct, places::threads, places::processes>(5); }

BOOST_AUTO_TEST_CASE(over_levels) {
    same_everywhere<ddl::tuned, places::levels<ddl::threads, ddl::recording, 2>,
                    places::levels<ddl::threads, ddl::recording, 2>>(4);
    same_everywhere<ddl::tuned, places::three_levels, places::three_levels>(8);
}

BOOST_AUTO_TEST_CASE(zeros_of_either_sign_give_the_same_bits_too) {
    const auto body = [](auto& ranks) {
        every_schedule::each([&]<class Schedule>() {
            for (const std::size_t count : {std::size_t{4}, std::size_t{3000}}) {
                const auto sign = [&](std::size_t i) {
                    return (i + static_cast<std::size_t>(ranks.rank())) % 3 == 0 ? -0.0F : 0.0F;
                };
                guarded<float> data{count, sign};
                ddl::allreduce<Schedule>(ranks, data, ddl::minimum{});
                for (std::size_t i = 0; i < count; ++i)
                    require(std::signbit(data[i]), "the negative zero is the smaller");
            }
        });
    };
    places::threads::run(3, body);
    places::messages<1>::run(3, body);
}
