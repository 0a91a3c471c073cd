// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "overtaking.hpp"

namespace data = boost::unit_test::data;

// Ranks of one host, or of several, that were dealt to its cores, or to hosts, in turn: those half of all apart lie close.
template <bool Near>
struct dealt_to : ddl::recording {
    explicit dealt_to(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    static constexpr bool dealt_in_turn() noexcept { return true; }
    static constexpr bool on_one_host() noexcept { return Near; }
};
using dealt = dealt_to<true>;
using dealt_to_hosts = dealt_to<false>;

namespace {

/// Matrices whose product depends on the order of its factors.
struct matrix {
    std::array<std::uint32_t, 4> m;
    friend bool operator==(const matrix&, const matrix&) = default;
};
struct times {
    matrix operator()(const matrix& a, const matrix& b) const {
        return {{a.m[0] * b.m[0] + a.m[1] * b.m[2], a.m[0] * b.m[1] + a.m[1] * b.m[3],
                 a.m[2] * b.m[0] + a.m[3] * b.m[2], a.m[2] * b.m[1] + a.m[3] * b.m[3]}};
    }
};
matrix factor(int rank, std::size_t i) {
    const auto bits = random_bits(rank, i);
    return {{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 16),
             static_cast<std::uint32_t>(bits >> 32) | 1, static_cast<std::uint32_t>(bits >> 8) | 1}};
}
matrix product_of(int ranks, std::size_t i) {
    matrix all = factor(0, i);
    for (int rank = 1; rank < ranks; ++rank) all = times{}(all, factor(rank, i));
    return all;
}

/// How many messages rank 0 of 8 sends while it sums a vector of 64 KiB, and to whom the longest.
template <class Ranks>
std::pair<std::size_t, int> sent_while_halving() {
    std::pair<std::size_t, int> sent{0, -1};
    ddl::recording::run(8, [&](ddl::recording& wire) {
        Ranks ranks{wire.split(0, wire.rank())};
        ranks.clear_log();
        sums<ddl::recursive_halving>(ranks, 16'384);
        if (ranks.rank() != 0) return;
        for (const ddl::recording::event& each : ranks.log()) {
            if (each.kind != ddl::recording::direction::send) continue;
            if (each.bytes == 32'768) sent.second = each.peer;
            ++sent.first;
        }
    });
    return sent;
}

/// Fails on rank 5.
struct add_but_on_five {
    static constexpr bool commutative = true;
    int rank;
    int operator()(int a, int b) const {
        if (rank == 5) throw std::domain_error("no such sum");
        return a + b;
    }
};

struct in_order : ddl::recording {
    explicit in_order(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    static constexpr bool on_one_host() noexcept { return true; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(long_halves_go_to_the_rank_that_lies_closest_and_of_one_host_with_the_contract) {
    BOOST_TEST((sent_while_halving<in_order>() == std::pair<std::size_t, int>{9, 1}), "a neighbour");
    BOOST_TEST((sent_while_halving<dealt>() == std::pair<std::size_t, int>{9, 4}), "half of all ranks away");
    BOOST_TEST((sent_while_halving<dealt_to_hosts>() == std::pair<std::size_t, int>{13, 4}), "behind 7 of a contract");
}

BOOST_DATA_TEST_CASE(ranks_that_were_dealt_have_the_sum, data::make({2, 4, 6, 8}) * data::make({1, 2}), size, seed) {
    overtaking<dealt>(size, static_cast<std::uint64_t>(seed), [](auto& ranks) {
        for (const std::size_t count : {0U, 1U, 17U, 1001U, 2500U, 20'003U})
            schedules<ddl::tuned, ddl::recursive_doubling, ddl::recursive_halving>::each(
                [&]<class Schedule>() { sums<Schedule>(ranks, count); });
    });
}

BOOST_DATA_TEST_CASE(so_has_a_root_and_what_it_had_reaches_all, data::make({4, 8}) * data::make({1, 2}), size, seed) {
    overtaking<dealt>(size, static_cast<std::uint64_t>(seed), [](auto& ranks) {
        for (int root = 0; root < ranks.size(); ++root)
            for (const std::size_t count : {700U, 2500U, 20'003U}) {
                auto values = small_values<int>(ranks.rank(), count);
                ddl::reduce(ranks, values, ddl::sum{}, root);
                const auto expected = sums_of_small_values(ranks.size(), count);
                require_values(
                    values,
                    [&](std::size_t i) { return ranks.rank() == root ? expected[i] : small_value(ranks.rank(), i); },
                    labelled<ddl::tuned>("reduce", ranks, count));
                auto spread = small_values<int>(ranks.rank(), count);
                ddl::broadcast(ranks, spread, root);
                require_values(
                    spread, [&](std::size_t i) { return small_value(root, i); },
                    labelled<ddl::tuned>("broadcast", ranks, count));
            }
    });
}

BOOST_DATA_TEST_CASE(operands_of_an_op_that_does_not_commute_are_combined_in_rank_order, data::make({2, 4, 8}), size) {
    overtaking<dealt>(size, 1, [](auto& ranks) {
        const auto products = [&](const std::vector<matrix>& all) {
            for (std::size_t i = 0; i < all.size(); ++i)
                if (all[i] != product_of(ranks.size(), i)) return false;
            return true;
        };
        for (const std::size_t count : {1U, 100U, 1001U, 5000U})
            schedules<ddl::tuned, ddl::recursive_doubling, ddl::tree>::each([&]<class Schedule>() {
                std::vector<matrix> values(count);
                for (std::size_t i = 0; i < count; ++i) values[i] = factor(ranks.rank(), i);
                const auto own = values;
                ddl::allreduce<Schedule>(ranks, values, times{});
                require(products(values), labelled<Schedule>("allreduce", ranks, count));
                values = own;
                ddl::reduce(ranks, values, times{});
                require(ranks.rank() != 0 || products(values), labelled<Schedule>("reduce", ranks, count));
            });
    });
}

BOOST_AUTO_TEST_CASE(whatever_they_call_all_hear_that_another_calls_something_else) {
    // directly; with the rounds of a contract; in pieces of it; halved; from a root; to one
    const std::vector<std::function<void(dealt&)>> calls{
        [](dealt& ranks) { ddl::barrier(ranks); },
        [](dealt& ranks) {
            std::vector<int> values(1);
            ddl::allreduce(ranks, values);
        },
        [](dealt& ranks) {
            std::vector<int> values(1000);
            ddl::allreduce(ranks, values);
        },
        [](dealt& ranks) {
            std::vector<int> values(4000);
            ddl::allreduce<ddl::recursive_doubling>(ranks, values);
        },
        [](dealt& ranks) {
            std::vector<int> values(20'000);
            ddl::allreduce<ddl::recursive_halving>(ranks, values);
        },
        [](dealt& ranks) {
            std::vector<int> values(4000);
            ddl::broadcast<ddl::tree>(ranks, values, 1);
        },
        [](dealt& ranks) {
            std::vector<int> values(4000);
            ddl::reduce<ddl::tree>(ranks, values, ddl::sum{}, 2);
        },
    };
    const auto disagree = [&](int size, std::uint64_t seed, std::size_t most, std::size_t other) {
        const int alone = static_cast<int>(most * 3 + other) % size;
        overtaking<dealt>(size, seed, [&](dealt& ranks) {
            require_error(ddl::errc::mismatch, "", [&] { calls[ranks.rank() == alone ? other : most](ranks); });
            sums<ddl::tuned>(ranks, 3000);
        });
    };
    for (std::size_t most = 0; most < calls.size(); ++most)
        for (std::size_t other = 0; other < calls.size(); ++other) {
            if (most == other) continue;
            disagree(4, 1 + (most + other) % 4, most, other);
            if (!under_thread_sanitizer) disagree(8, 1 + other % 4, most, other);
        }
}

BOOST_AUTO_TEST_CASE(a_rank_that_fails_is_heard_of) {
    overtaking<dealt>(8, 1, [](dealt& ranks) {
        std::vector<int> values(20'000);
        bool threw = false;
        try {
            ddl::allreduce<ddl::recursive_halving>(ranks, values, add_but_on_five{ranks.rank()});
        } catch (const ddl::error& failure) {
            threw = std::string{failure.what()}.find("a peer gave up [allreduce, rank 5") != std::string::npos;
        } catch (const std::domain_error&) { threw = ranks.rank() == 5; }
        require(threw, "it went well");
    });
}
