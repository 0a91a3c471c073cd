// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/executor/direct_move.hpp>
#include <ddl/reduce.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <set>
#include <vector>

#include "../collective/oracle.hpp"
#include "../collective/places.hpp"

// Ranks that spread what they stage, whatever processor runs the test.
struct spreading : private_memory {
    explicit spreading(ddl::threads&& team) : private_memory{std::move(team)} {}
};
template <>
inline constexpr ddl::direct_limits ddl::limits_of<spreading>{.one_shot = 1024, .segment = 8192, .spread = 1 << 18};

// Ranks that stage in so many areas, likewise.
template <std::size_t Areas>
struct ahead_by : private_memory {
    explicit ahead_by(ddl::threads&& team) : private_memory{std::move(team)} {}
};
template <std::size_t Areas>
inline constexpr ddl::direct_limits ddl::limits_of<ahead_by<Areas>>{.one_shot = 1024, .segment = 8192, .areas = Areas};

namespace {

struct alignas(128) pair_of_lines {
    int value = 0;
};

/// Calls of many lengths one after the other, each of which finds what it stages where others have staged before.
template <class Ranks>
void call_in_turns(Ranks& ranks) {
    const int size = ranks.size(), rank = ranks.rank();
    const auto p = static_cast<std::size_t>(size);
    for (int round = 0; round < 12; ++round)
        for (const std::size_t count : {3U, 100U, 1500U, 5000U, 20'001U}) {
            std::vector<int> data(count);
            for (std::size_t i = 0; i < count; ++i) data[i] = small_value(rank, i) + round;
            if (round % 5 == 4) ddl::allreduce<ddl::ring>(ranks, data);
            else ddl::allreduce(ranks, data);
            const auto sums = sums_of_small_values(size, count);
            for (std::size_t i = 0; i < count; ++i) require(data[i] == sums[i] + size * round, "allreduce");
            if (round % 3 == 1) ddl::barrier(ranks);

            std::vector<pair_of_lines> from(count % 200 + 1);
            for (auto& each : from) each.value = rank * 1000 + round;
            std::vector<pair_of_lines> all(p * from.size());
            ddl::all_gather(ranks, from, all);
            for (std::size_t i = 0; i < all.size(); ++i)
                require(all[i].value == static_cast<int>(i / from.size()) * 1000 + round, "all_gather");

            const int root = round % size;
            std::vector<int> news(count, rank == root ? round + 7 : -1);
            ddl::broadcast(ranks, news, root);
            require(news == std::vector<int>(count, round + 7), "broadcast");

            std::vector<int> out(p * count), in(p * count);
            for (std::size_t i = 0; i < in.size(); ++i) in[i] = rank * 100 + static_cast<int>(i / count) + round;
            ddl::all_to_all(ranks, in, out);
            for (std::size_t i = 0; i < out.size(); ++i)
                require(out[i] == static_cast<int>(i / count) * 100 + rank + round, "all_to_all");

            std::vector<int> total(rank == root ? count : 0);
            ddl::reduce(ranks, std::vector<int>(count, rank + 1), total, ddl::sum{}, root);
            for (const int each : total) require(each == size * (size + 1) / 2, "reduce");
        }
}

template <class Ranks>
void run_in_turns(std::initializer_list<int> sizes) {
    for (const int size : sizes)
        ddl::threads::run(
            size,
            [](ddl::threads& team) {
                Ranks ranks{std::move(team)};
                call_in_turns(ranks);
            },
            patient);
}

}  // namespace

BOOST_AUTO_TEST_CASE(segments_that_are_spread_lie_apart_and_come_back) {
    const ddl::call what = ddl::describe<ddl::no_op, int, ddl::direct>(ddl::collective::barrier, 1, 0);
    ddl::threads::run(1, [&](ddl::threads& team) {
        spreading ranks{std::move(team)};
        const std::byte* const window = ranks.window(0);
        for (const std::size_t each : {100U, 1000U, 4096U})
            for (const int parts : {1, 2, 3})
                for (const std::size_t longest : {each / 2, each, 3 * each}) {
                    std::set<std::size_t> begins;
                    for (int round = 0; round < 64; ++round) {
                        ddl::memory_call here{ranks, what, true};
                        ranks.turn_staging();
                        here.spread<int>(longest, each, parts, parts);
                        // two segments of each part, of which one is read and one filled
                        std::set<std::size_t> under_way;
                        for (std::size_t turn = 0; turn < 2; ++turn)
                            for (int part = 0; part < parts; ++part) {
                                const auto* const first = here.staged<int>(0, turn, part, each, 60);
                                const auto at =
                                    static_cast<std::size_t>(reinterpret_cast<const std::byte*>(first) - window);
                                const std::size_t bytes = std::min(longest, each) * sizeof(int);
                                require(at + bytes <= ranks.window_bytes(), "beyond the window");
                                for (const std::size_t other : under_way)
                                    require(other + bytes <= at || at + bytes <= other, "two segments overlap");
                                under_way.insert(at);
                                if (turn == 0 && part == 0) begins.insert(at);
                            }
                        here.announce();
                        here.end();
                    }
                    require(begins.size() > 2, "calls stage in the same lines again and again");
                    if (each == 4096) require(begins.size() < 64, "they never come back");
                }
    });
}

BOOST_AUTO_TEST_CASE(calls_that_are_spread_do_not_meet_each_other) { run_in_turns<spreading>({1, 2, 3, 5, 9}); }

BOOST_AUTO_TEST_CASE(calls_that_get_ahead_do_not_meet_each_other) {
    run_in_turns<ahead_by<2>>({2, 3});
    run_in_turns<ahead_by<4>>({2, 3});
    run_in_turns<ahead_by<16>>({2, 3});
}

/// The reader of a block takes half of it, and goes on when its publisher has left the call.
BOOST_AUTO_TEST_CASE(who_stages_gets_ahead_of_its_reader_by_all_areas) {
    std::atomic<bool> left = false;
    ddl::threads::run(
        2,
        [&](ddl::threads& team) {
            ahead_by<4> ranks{std::move(team)};
            constexpr std::size_t count = 8 * 2048 / sizeof(int);  // two segments for each area
            int taken = 0;
            const auto in = small_values<int>(0, count);
            guarded<int> out{count};
            const ddl::call what = ddl::describe<ddl::no_op, int, ddl::direct>(ddl::collective::broadcast, count, 0);
            const ddl::published_blocks blocks{in.data(),
                                               count,
                                               1,
                                               [](int, int) { return std::size_t{0}; },
                                               [](int peer, int) { return peer == 0 ? count : 0; },
                                               count};
            const auto leave = [&left](const int* rank) {
                if (*rank != 0) return;
                left = true;
                left.notify_all();
            };
            const int rank = ranks.rank();
            const std::unique_ptr<const int, decltype(leave)> leaves{&rank, leave};  // by an exception, too
            ddl::direct_move(ddl::memory_call{ranks, what, true}, blocks, 2 * count, [&](auto copy) {
                if (rank == 0) return;
                if (taken++ == 4) left.wait(false);
                copy(0, 0, out.data());
            });
            if (rank == 1)
                require_values(
                    out, [](std::size_t i) { return small_value(0, i); }, "what was staged");
        },
        patient);
}

BOOST_AUTO_TEST_CASE(ranks_that_turned_and_ranks_that_did_not_turn_alike_again) {
    ddl::threads::run(
        3,
        [](ddl::threads& team) {
            spreading ranks{std::move(team)};
            for (int round = 0; round < 6; ++round) {
                const bool alone = ranks.rank() == round % 3;
                std::vector<int> data(5000, 1);
                const ddl::error failure = error_of([&] {
                    if (!alone) ddl::allreduce(ranks, data);
                    else if (round % 2 == 0) ddl::barrier(ranks);
                    else (void)ranks.split(0, 0);
                });
                require(failure.code() == ddl::errc::mismatch, failure.what());
                for (const std::size_t count : {300U, 5000U}) {
                    std::vector<int> again(count, 1);
                    ddl::allreduce(ranks, again);
                    require(again == std::vector<int>(count, 3), "it is out of order afterwards");
                }
            }
        },
        patient);
}
