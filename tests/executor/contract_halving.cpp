// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/executor/contract.hpp>
#include <ddl/executor/contract_halving.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../collective/oracle.hpp"
#include "../collective/require.hpp"
#include "../collective/sweep.hpp"

namespace data = boost::unit_test::data;

namespace {

constexpr ddl::segmenting whole{.bytes = std::size_t{60} << 10, .depth = 16};

/// A wire between ranks of one host, whose messages are cut so. Ranks half of four apart share a core.
template <const ddl::segmenting& Cut>
struct near_wire {
    static constexpr ddl::segmenting host_segments = Cut;
    int own = 0;
    static bool on_one_host() noexcept { return true; }
    bool beside(int peer) const noexcept { return (peer ^ own) == 2; }
};

/// A wire between ranks of several hosts.
struct far_wire {
    static bool on_one_host() noexcept { return false; }
};

template <const ddl::segmenting& Cut = whole>
ddl::halving_load<near_wire<Cut>> load_of(std::size_t count, int size) {
    static constexpr near_wire<Cut> wire;
    return {wire, {count, size}, sizeof(float), nullptr};
}

/// What each rank knows of each chunk, as lists of ranks, after the rounds of a contract and the program behind it.
using knowledge = std::vector<std::vector<std::vector<int>>>;

knowledge halved(int size, ddl::nearer close) {
    const auto ranks = static_cast<std::size_t>(size);
    knowledge known(ranks, std::vector<std::vector<int>>(ranks));
    for (std::size_t r = 0; r < ranks; ++r)
        for (auto& chunk : known[r]) chunk = {static_cast<int>(r)};
    for (int round = 0; round < ddl::contract_round::count(size); ++round) {
        const knowledge before = known;
        for (int r = 0; r < size; ++r) {
            const ddl::contract_round peers{r, size, round, close};
            const ddl::chunk_range left = ddl::left_by_halving(r, size, round + 1, close);
            for (int c = left.first; c < left.first + left.count; ++c) {
                const auto& arrived = before[static_cast<std::size_t>(peers.from)][static_cast<std::size_t>(c)];
                auto& ours = known[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)];
                ours.insert(peers.of == ddl::testimony::below ? ours.begin() : ours.end(), arrived.begin(),
                            arrived.end());
            }
        }
    }
    return known;
}

}  // namespace

constexpr ddl::nearer either_way[] = {ddl::nearer::neighbours, ddl::nearer::halves_apart};

BOOST_DATA_TEST_CASE(a_rank_is_left_with_a_chunk_that_holds_every_operand_once,
                     data::make({2, 4, 8, 16}) * data::make({0, 1}), size, way) {
    const ddl::nearer close = either_way[way];
    knowledge known = halved(size, close);
    std::vector<int> all(static_cast<std::size_t>(size)), owners(all);
    std::iota(all.begin(), all.end(), 0);
    for (int r = 0; r < size; ++r) {
        const ddl::chunk_range own = ddl::left_by_halving(r, size, ddl::contract_round::count(size), close);
        BOOST_TEST(own.count == 1);
        ++owners[static_cast<std::size_t>(own.first)];
        auto& operands = known[static_cast<std::size_t>(r)][static_cast<std::size_t>(own.first)];
        if (close == ddl::nearer::halves_apart) std::sort(operands.begin(), operands.end());
        BOOST_TEST(operands == all, "else in the order of ranks");
    }
    BOOST_TEST(owners == std::vector<int>(all.size(), 1));
}

BOOST_DATA_TEST_CASE(what_one_gives_the_other_keeps,
                     data::make({2, 4, 8}) * data::make({0, 3, 1000, 1001}) * data::make({0, 1}), size, count, way) {
    auto load = load_of(static_cast<std::size_t>(count), size);
    load.close = either_way[way];
    for (int r = 0; r < size; ++r) {
        std::size_t left = static_cast<std::size_t>(count) * sizeof(float);
        for (int round = 0; 1 << round < size; ++round) {
            const ddl::load_part given = load.given(r, round), kept = load.kept(r, round);
            const int peer = r ^ ddl::distance_of_pairs(size, round, load.close);
            const ddl::load_part of_peer = load.kept(peer, round);
            BOOST_TEST(given.cut.bytes == of_peer.cut.bytes);
            BOOST_TEST(given.cut.pieces == of_peer.cut.pieces);
            BOOST_TEST(given.first == of_peer.first);
            BOOST_TEST(given.cut.bytes + kept.cut.bytes == left);
            BOOST_TEST((given.first == 0 ? kept.first == given.cut.bytes || given.cut.bytes == 0 || kept.cut.bytes == 0
                                         : kept.first == 0 && given.first == kept.cut.bytes));
            left = kept.cut.bytes;
        }
    }
}

BOOST_DATA_TEST_CASE(afterwards_all_have_all, data::make({2, 4, 8, 16}) * data::make({0, 1}), size, way) {
    const auto program = ddl::gather_after_halving(size, either_way[way]);
    std::vector<std::vector<bool>> has(static_cast<std::size_t>(size),
                                       std::vector<bool>(static_cast<std::size_t>(size)));
    for (int r = 0; r < size; ++r)
        has[static_cast<std::size_t>(r)]
           [static_cast<std::size_t>(ddl::left_by_halving(r, size, program.rounds(), either_way[way]).first)] = true;
    for (int round = 0; round < program.rounds(); ++round) {
        const auto before = has;
        for (int r = 0; r < size; ++r) {
            ddl::transfer sent = program.at(r, round, 0), received = program.at(r, round, 1);
            if (sent.what != ddl::action::send) std::swap(sent, received);
            ddl::transfer at_peer = program.at(received.peer, round, 0);
            if (at_peer.what != ddl::action::send) at_peer = program.at(received.peer, round, 1);
            BOOST_TEST((sent.what == ddl::action::send && received.what == ddl::action::receive));
            BOOST_TEST((at_peer.peer == r && at_peer.chunk == received.chunk && at_peer.count == received.count));
            for (int c = received.chunk; c < received.chunk + received.count; ++c) {
                BOOST_TEST(before[static_cast<std::size_t>(received.peer)][static_cast<std::size_t>(c)]);
                has[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] = true;
            }
        }
    }
    for (const auto& chunks : has) BOOST_TEST((chunks == std::vector<bool>(chunks.size(), true)));
}

BOOST_AUTO_TEST_CASE(halves_go_with_a_contract_among_a_power_of_two_and_while_none_is_too_long) {
    BOOST_TEST(load_of(262'144, 2).fits());
    BOOST_TEST(!load_of(262'146, 2).fits(), "half of it is longer than what a contract brings");
    BOOST_TEST(load_of(262'144, 8).fits());
    BOOST_TEST(load_of(131'072, 16).fits());
    BOOST_TEST(!load_of(131'074, 16).fits(), "halves of many ranks are shorter");
    static constexpr far_wire far;
    using of_hosts = ddl::halving_load<far_wire>;
    BOOST_TEST((of_hosts{far, {131'072, 2}, sizeof(float), nullptr}.fits()));
    BOOST_TEST((!of_hosts{far, {131'074, 2}, sizeof(float), nullptr}.fits()), "so are those of hosts");
    BOOST_TEST(load_of(4, 4).fits());
    BOOST_TEST(!load_of(3, 4).fits(), "a rank that is left with nothing would hear of no failure afterwards");
    BOOST_TEST(!load_of(100, 1).fits());
    BOOST_TEST(!load_of(100, 3).fits());
    BOOST_TEST(!load_of(100, 6).fits());
    static constexpr ddl::segmenting fine{.bytes = 100, .depth = 16};
    BOOST_TEST(load_of<fine>(1650, 2).fits());
    BOOST_TEST(!load_of<fine>(1652, 2).fits(), "its half would be 34 pieces");
    static constexpr ddl::segmenting finer_when_short{
        .bytes = 1 << 20, .depth = 4, .short_message = 16384, .short_bytes = 448};
    BOOST_TEST(load_of<finer_when_short>(30'720, 2).fits(), "60 KiB are one piece");
    BOOST_TEST(!load_of<finer_when_short>(30'720, 8).fits(), "but 15 KiB, in the last round, are 35");
    BOOST_TEST(!load_of<finer_when_short>(8193, 2).fits(), "of two halves the shorter one is cut");
    static constexpr ddl::segmenting finer_beside{.bytes = 1 << 20,
                                                  .depth = 4,
                                                  .short_message = 100,
                                                  .short_bytes = 100,
                                                  .short_exchange = 100,
                                                  .short_beside = 6000};
    BOOST_TEST(load_of<finer_beside>(3300, 4).fits(), "6600 bytes, then 3300 in 33 pieces, or one");
    BOOST_TEST(!load_of<finer_beside>(3304, 4).fits(), "as all say, also those who share no core");
    BOOST_TEST(load_of<finer_beside>(3200, 4).given(0, 1).cut.pieces == 32U);
    BOOST_TEST(load_of<finer_beside>(3200, 4).given(0, 0).cut.pieces == 1U);
}

namespace {
/// Says which rank gave up the first element of each range that is combined.
struct note_pairs {
    static constexpr bool commutative = true;
    std::vector<std::pair<int, int>>* seen;
    int operator()(int a, int b) const {
        seen->emplace_back(a, b);
        return a + b;
    }
};
}  // namespace

BOOST_AUTO_TEST_CASE(operands_are_combined_once_and_in_the_order_of_ranks) {
    ddl::recording::run(4, [](ddl::recording& ranks) {
        std::vector<std::pair<int, int>> seen;
        std::vector<int> values(4, 1 << (8 * ranks.rank()));
        ddl::allreduce_plan<note_pairs, int, ddl::recursive_halving, ddl::recording>{
            ranks, values.data(), values.data(), values.size(), note_pairs{&seen}}();
        require(values == std::vector<int>(4, 0x0101'0101), "another sum");
        // two elements with the neighbour, one with the pair beyond
        const int low = ranks.rank() < 2 ? 0x1 : 0x1'0000;
        const std::vector<std::pair<int, int>> expected{{low, low << 8}, {low, low << 8}, {0x101, 0x101'0000}};
        require(seen == expected, "combined in another order");
    });
}

namespace {
struct alignas(128) far_apart {
    int value;
    friend far_apart operator+(far_apart a, far_apart b) { return {a.value + b.value}; }
};
}  // namespace

BOOST_AUTO_TEST_CASE(elements_of_unusual_alignment_lie_as_they_must) {
    ddl::recording::run(4, [](ddl::recording& ranks) {
        std::vector<far_apart> values(400, far_apart{ranks.rank()});
        ddl::allreduce<ddl::recursive_halving>(ranks, values);
        for (const far_apart& each : values) require(each.value == 6, "another sum");
    });
}

BOOST_DATA_TEST_CASE(a_part_that_is_one_piece_is_the_message_of_the_contract_where_marks_say_what_is_called,
                     data::make({false, true}), marks) {
    const auto run = [](ddl::recording& ranks) {
        std::vector<int> values(40'000, ranks.rank());
        ddl::allreduce<ddl::recursive_halving>(ranks, values);
        require(values == std::vector<int>(40'000, 6), "another sum");
        std::vector<std::size_t> comparing, beside;
        for (const ddl::recording::event& each : ranks.log()) {
            if (each.kind != ddl::recording::direction::send) continue;
            if (each.tag == ddl::recording::marked || each.tag == static_cast<int>(ddl::message_tag::contract))
                (each.bytes == sizeof(ddl::contract_head) ? comparing : beside).push_back(each.bytes);
        }
        // half in pieces of 60 KiB and a quarter in one: with a head each, or the quarter with a mark
        require(beside == std::vector<std::size_t>{61'440, 80'000 - 61'440, 40'000}, "other parts");
        require(comparing.size() == (ranks.marks() ? 1 : 2), std::to_string(comparing.size()) + " heads");
    };
    ddl::recording::run(4, run, {.marks = marks});
}
