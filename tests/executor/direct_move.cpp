// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/direct_move.hpp>
#include <ddl/executor/over_memory.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/schedule/direct.hpp>

#include <boost/test/unit_test.hpp>

#include "../collective/oracle.hpp"
#include "../collective/places.hpp"

namespace {

/// Every rank hands a block to each rank, of `each` elements that lie elsewhere on each; the way that it took.
template <class Ranks>
ddl::protocol exchange(Ranks& ranks, std::size_t each) {
    const auto skipped = static_cast<std::size_t>(ranks.rank()) * 7;
    const auto first = [each](int, int part) { return static_cast<std::size_t>(part) * each; };
    const auto length = [each](int, int) { return each; };
    const std::size_t count = each * static_cast<std::size_t>(ranks.size());
    std::vector<int> in(skipped + count);
    for (std::size_t i = 0; i < count; ++i) in[skipped + i] = small_value(ranks.rank(), i);
    guarded<int> out{count};
    const ddl::call what = ddl::describe<ddl::no_op, int, ddl::direct>(ddl::collective::all_to_all, count, 0);
    const auto way = ddl::direct_move(ddl::memory_call{ranks, what, true},
                                      ddl::published_blocks{static_cast<const int*>(in.data() + skipped), count,
                                                            ranks.size(), first, length, each, ranks.rank()},
                                      2 * count * static_cast<std::size_t>(ranks.size()), [&](auto copy) {
                                          for (int peer = 0; peer < ranks.size(); ++peer)
                                              copy(peer, ranks.rank(), out.data() + first(0, peer));
                                      });
    require_values(out, exchanged_values(ranks.rank(), each), ddl::to_string(way));
    return way;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_few_values_travel_in_the_notice) {
    const auto body = [](auto& ranks) {
        require(exchange(ranks, 4) == ddl::protocol::in_notice, "three blocks of 16 bytes");
        require(exchange(ranks, 5) != ddl::protocol::in_notice, "one element more");
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}

BOOST_AUTO_TEST_CASE(blocks_that_all_can_map_are_not_staged) {
    places::threads::run(
        3, [](auto& ranks) { require(exchange(ranks, 70'000) == ddl::protocol::mapped, "it was staged"); });
    places::processes::run(
        3, [](auto& ranks) { require(exchange(ranks, 70'000) == ddl::protocol::staged, "peers cannot map it"); });
}

BOOST_AUTO_TEST_CASE(few_lines_are_staged_unless_they_are_many_together) {
    for (const int size : {4, 5})
        places::threads::run(size, [](auto& ranks) {
            const auto way =
                exchange(ranks, 500);  // blocks of 2000 bytes, and from 8192 bytes of a rank on they are mapped
            require(way == (ranks.size() == 4 ? ddl::protocol::staged : ddl::protocol::mapped), ddl::to_string(way));
        });
}

BOOST_AUTO_TEST_CASE(each_call_that_may_stage_turns_to_the_other_half) {
    const auto body = [](auto& ranks) {
        for (int round = 0; round < 3; ++round)
            for (const std::size_t each : {4U, 5U, 100U, 500U, 512U, 3000U}) {
                const std::uint64_t before = ranks.turned();
                const auto way = exchange(ranks, each);
                require(ranks.turned() - before == (way != ddl::protocol::in_notice), "another number of turns");
            }
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}

/// Blocks of a size that is no multiple of anything, one after the other in few lines.
BOOST_AUTO_TEST_CASE(blocks_of_odd_sizes_lie_apart) {
    const auto body = [](auto& ranks) {
        const auto size = static_cast<std::size_t>(ranks.size());
        for (const std::size_t each : {13U, 51U, 100U, 999U, 2047U, 2048U, 2049U, 31U}) {
            const auto byte = [](int from, std::size_t i) {
                return static_cast<unsigned char>(i * 31 + static_cast<std::size_t>(from) * 7);
            };
            std::vector<unsigned char> in(each * size), out(each * size);
            for (std::size_t i = 0; i < in.size(); ++i) in[i] = byte(ranks.rank(), i);
            ddl::all_to_all_over<ddl::direct, ddl::checked>(ranks, in.data(), out.data(), in.size());
            for (int peer = 0; peer < ranks.size(); ++peer)
                for (std::size_t i = 0; i < each; ++i)
                    require(out[static_cast<std::size_t>(peer) * each + i] ==
                                byte(peer, static_cast<std::size_t>(ranks.rank()) * each + i),
                            "another byte");
        }
    };
    for (const int ranks : {1, 2, 3, 7}) {
        places::threads::run(ranks, body);
        places::processes::run(ranks, body);
    }
}

/// Elements that are aligned to more than a cache line lie so where they are staged.
BOOST_AUTO_TEST_CASE(folded_blocks_of_few_lines_are_aligned) {
    struct alignas(128) row {
        int values[32];
    };
    struct add {
        row operator()(const row& a, const row& b) const {
            for (const row* each : {&a, &b})
                require(reinterpret_cast<std::uintptr_t>(each) % alignof(row) == 0, "it lies elsewhere");
            row all = a;
            for (std::size_t k = 0; k < 32; ++k) all.values[k] += b.values[k];
            return all;
        }
    };
    const auto body = [](auto& ranks) {
        for (const std::size_t each : {1U, 3U, 15U, 17U}) {
            std::vector<row> in(each * static_cast<std::size_t>(ranks.size())), out(each);
            for (std::size_t i = 0; i < in.size(); ++i)
                for (int& value : in[i].values) value = static_cast<int>(i) + ranks.rank();
            ddl::reduce_scatter_over<ddl::direct, ddl::checked>(ranks, in.data(), out.data(), in.size(), add{});
            const int size = ranks.size();
            for (std::size_t i = 0; i < each; ++i)
                for (const int value : out[i].values)
                    require(value == size * (ranks.rank() * static_cast<int>(each) + static_cast<int>(i)) +
                                         size * (size - 1) / 2,
                            "another sum");
        }
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}

BOOST_AUTO_TEST_CASE(results_that_no_cache_would_keep_are_stored_past_it) {
    const auto body = [](auto& ranks) {
        ranks.set_caches({.second = 1, .last = 1});
        for (const std::size_t each : {5U, 63U, 1001U, 70'001U}) exchange(ranks, each);
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}

BOOST_AUTO_TEST_CASE(blocks_are_published_by_those_that_have_some) {
    const auto body = [](auto& ranks) {
        // rank r publishes r blocks of r * 1000 elements each; everybody takes the last block of everybody
        const auto length = [](int peer, int part) { return part < peer ? static_cast<std::size_t>(peer) * 9000 : 0; };
        const auto first = [](int peer, int part) { return static_cast<std::size_t>(part * peer) * 9000; };
        const int mine = ranks.rank();
        const std::size_t count = first(mine, mine);
        const auto in = small_values<int>(mine, count);
        std::vector<guarded<int>> taken;
        for (int peer = 0; peer < ranks.size(); ++peer) taken.emplace_back(static_cast<std::size_t>(peer) * 9000);
        const ddl::call what = ddl::describe<ddl::no_op, int, ddl::direct>(ddl::collective::gather, 1, 0);
        const ddl::published_blocks blocks{in.data(), count, 4, first, length, std::size_t{27'000}};
        ddl::direct_move(ddl::memory_call{ranks, what, true}, blocks, std::size_t{5 * 54'000}, [&](auto copy) {
            for (int peer = 1; peer < ranks.size(); ++peer)
                copy(peer, peer - 1, taken[static_cast<std::size_t>(peer)].data());
        });
        for (int peer = 1; peer < ranks.size(); ++peer)
            require_values(
                taken[static_cast<std::size_t>(peer)],
                [&](std::size_t i) { return small_value(peer, first(peer, peer - 1) + i); }, "a block");
    };
    places::threads::run(4, body);
    places::processes::run(4, body);
}
