// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/schedule/multi_ring.hpp>

#include <boost/test/unit_test.hpp>

#include <numeric>

#include "../collective/oracle.hpp"
#include "../collective/sweep.hpp"
#include "own_schedules.hpp"

namespace {

/// Elements of 3000 bytes: a segment of a window holds one or two of them.
struct wide {
    int values[750];
    friend bool operator==(const wide&, const wide&) = default;
};
struct add_wide {
    static constexpr bool commutative = true;
    wide operator()(const wide& a, const wide& b) const {
        wide all;
        for (std::size_t k = 0; k < std::size(all.values); ++k) all.values[k] = a.values[k] + b.values[k];
        return all;
    }
};
wide wide_value(int rank, std::size_t i) {
    wide one;
    std::iota(std::begin(one.values), std::end(one.values), 1000 * rank + static_cast<int>(i));
    return one;
}

template <class Schedule, class Ranks>
void sums(Ranks& ranks, std::size_t count) {
    auto data = small_values<int>(ranks.rank(), count);
    ddl::allreduce<Schedule>(ranks, data);
    const auto expected = sums_of_small_values(ranks.size(), count);
    require_values(
        data, [&](std::size_t i) { return expected[i]; }, labelled<Schedule>("allreduce", ranks, count));
}

}  // namespace

BOOST_AUTO_TEST_CASE(schedules_of_a_users_own_run_as_they_are_written) {
    for (const int size : {1, 2, 3, 5})
        places::threads::run(size, [](auto& ranks) {
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{100'003}})
                schedules<own::array_ring, own::chain, own::gossip>::each(
                    [&]<class Schedule>() { sums<Schedule>(ranks, count); });
        });
}

BOOST_AUTO_TEST_CASE(many_chunks_share_a_window) {
    places::threads::run(3, [](auto& ranks) {
        sums<ddl::multi_ring<64>>(ranks, 100);      // fewer elements than chunks
        sums<ddl::multi_ring<64>>(ranks, 200'003);  // chunks longer than their part of the window
    });
}

BOOST_AUTO_TEST_CASE(elements_longer_than_most_of_a_chunks_part_of_the_window) {
    places::processes::run(3, [](auto& ranks) {
        for (const std::size_t count : std::initializer_list<std::size_t>{1, 5, 100}) {
            guarded<wide> data{count, [&](std::size_t i) { return wide_value(ranks.rank(), i); }};
            ddl::allreduce<ddl::multi_ring<8>>(ranks, data, add_wide{});
            require_values(
                data,
                [&](std::size_t i) {
                    return add_wide{}(add_wide{}(wide_value(0, i), wide_value(1, i)), wide_value(2, i));
                },
                "wide elements");
        }
    });
}

BOOST_AUTO_TEST_CASE(walks_and_fused_calls_may_alternate) {
    places::processes::run(4, [](auto& ranks) {
        for (int i = 0; i < 20; ++i) {
            sums<ddl::ring>(ranks, 3000);
            sums<ddl::direct>(ranks, 3000);
            sums<ddl::recursive_doubling>(ranks, 3000);
            sums<ddl::direct>(ranks, 10);
        }
    });
}
