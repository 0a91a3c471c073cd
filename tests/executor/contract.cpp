// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/over_contract.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "../collective/require.hpp"

namespace data = boost::unit_test::data;

namespace {

constexpr std::size_t asks = 0;  // stands for a rank that asks for chunks

ddl::call call_of(std::size_t count) {
    if (count == asks) return ddl::describe<ddl::no_op, std::byte, ddl::ring>(ddl::collective::staged, 0, 0);
    return ddl::describe<ddl::sum, float, ddl::ring>(ddl::collective::allreduce, count, 0);
}

ddl::agreement alone(int rank, std::size_t count) { return {call_of(count), call_of(count), rank, -1}; }

/// What ranks that bring these counts find out, joined as `split` says: those before it, those behind it, both.
ddl::agreement joined(const std::vector<std::size_t>& counts, std::size_t split) {
    const auto part = [&](std::size_t first, std::size_t last) {
        ddl::agreement all = alone(static_cast<int>(first), counts[first]);
        for (std::size_t r = first + 1; r < last; ++r) all.join(alone(static_cast<int>(r), counts[r]));
        return all;
    };
    ddl::agreement all = part(0, split);
    if (split < counts.size()) all.join(part(split, counts.size()));
    return all;
}

/// Which operands each rank holds after a contract with which payload flows, each rank's own at first or the root's alone, and
/// whose rounds begin with those that lie `close`. No more messages bring payload than are needed.
std::vector<std::vector<int>> carried(ddl::flow way, int root, int size, ddl::nearer close = ddl::nearer::neighbours) {
    std::vector<std::vector<int>> held(static_cast<std::size_t>(size));
    int messages = 0;
    for (int r = 0; r < size; ++r)
        if (way != ddl::flow::from_root || r == root) held[static_cast<std::size_t>(r)] = {r};
    for (int round = 0; round < ddl::contract_round::count(size); ++round) {
        const auto before = held;
        for (int r = 0; r < size; ++r) {
            const ddl::contract_round peers{r, size, round, close};
            if (peers.from < 0 || !ddl::carries_payload(way, root, peers.from, r, round, size, close)) continue;
            ++messages;
            const auto& arrived = before[static_cast<std::size_t>(peers.from)];
            auto& ours = held[static_cast<std::size_t>(r)];
            if (peers.of == ddl::testimony::all) ours.clear();
            ours.insert(peers.of == ddl::testimony::below ? ours.begin() : ours.end(), arrived.begin(), arrived.end());
        }
    }
    if (way == ddl::flow::from_root) BOOST_TEST(messages == size - 1);
    if (way == ddl::flow::to_root) BOOST_TEST(messages <= size);  // a root that hands its part over gets the result
    return held;
}

/// A wire whose messages are cut as those of one host may be.
struct near_wire {
    static constexpr ddl::segmenting host_segments{.bytes = 1 << 20,
                                                   .depth = 8,
                                                   .short_message = 16384,
                                                   .short_bytes = 4032,
                                                   .short_exchange = 32768,
                                                   .quick_message = 512,
                                                   .quick_bytes = 256};
    int ranks = 16;
    static bool on_one_host() noexcept { return true; }
    int size() const noexcept { return ranks; }
};
/// The same with marks in place of heads.
struct marking_wire : near_wire {
    static bool marks() noexcept { return true; }
};
/// The same of ranks that share cores, and pass messages whole.
struct crowded_wire : near_wire {
    static bool uncrowded() noexcept { return false; }
    static bool pieces_pay() noexcept { return false; }
};
/// The same of ranks that have a core each.
struct spacious_wire : near_wire {
    static bool uncrowded() noexcept { return true; }
};
/// The same with messages in few pieces but for shorter ones.
struct coarse_wire : near_wire {
    static constexpr ddl::segmenting host_segments{
        .bytes = 256 << 10, .depth = 8, .short_message = 128 << 10, .short_bytes = 8192};
};
struct far_wire {
    int ranks = 16;
    int size() const noexcept { return ranks; }
};
/// One that has scratch.
struct roomy_wire : near_wire {
    std::vector<std::byte> memory;
    std::byte* scratch(std::size_t bytes) {
        memory.resize(bytes);
        return memory.data();
    }
};

}  // namespace

BOOST_DATA_TEST_CASE(a_round_of_a_contract_is_one_of_recursive_doubling, data::xrange(1, 18), size) {
    BOOST_TEST(ddl::contract_round::count(size) == ddl::recursive_doubling::rounds(size));
    for (int round = 0; round < ddl::contract_round::count(size); ++round)
        for (int rank = 0; rank < size; ++rank) {
            const ddl::contract_round peers{rank, size, round};
            int to = -1, from = -1;
            auto of = ddl::testimony::all;
            const auto transfers = ddl::recursive_doubling::round(rank, size, round);
            for (int i = 0; i < transfers.size(); ++i) {
                (transfers[i].what == ddl::action::send ? to : from) = transfers[i].peer;
                if (transfers[i].what == ddl::action::receive_reduce)
                    of = transfers[i].peer < rank ? ddl::testimony::below : ddl::testimony::above;
            }
            BOOST_TEST(peers.to == to);
            BOOST_TEST(peers.from == from);
            BOOST_TEST((peers.of == of));
        }
}

BOOST_DATA_TEST_CASE(payload_reaches_whom_it_is_for_once_and_in_the_order_of_ranks, data::xrange(1, 18), size) {
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    for (const auto& held : carried(ddl::flow::among_all, 0, size)) BOOST_TEST(held == all);
    for (int root = 0; root < size; ++root) {
        BOOST_TEST(carried(ddl::flow::to_root, root, size)[static_cast<std::size_t>(root)] == all);
        for (const auto& held : carried(ddl::flow::from_root, root, size)) BOOST_TEST(held == std::vector<int>{root});
    }
}

BOOST_DATA_TEST_CASE(so_it_does_once_where_rounds_begin_halves_apart, data::make({2, 4, 8, 16}), size) {
    const auto in_order = [&](ddl::flow way, int root) {
        auto held = carried(way, root, size, ddl::nearer::halves_apart);
        for (auto& each : held) std::sort(each.begin(), each.end());
        return held;
    };
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    for (const auto& held : in_order(ddl::flow::among_all, 0)) BOOST_TEST(held == all);
    for (int root = 0; root < size; ++root) {
        BOOST_TEST(in_order(ddl::flow::to_root, root)[static_cast<std::size_t>(root)] == all);
        for (const auto& held : in_order(ddl::flow::from_root, root)) BOOST_TEST(held == std::vector<int>{root});
    }
    const ddl::contract_round first{1, size, 0, ddl::nearer::halves_apart};
    BOOST_TEST(first.to == (1 ^ size / 2));
}

BOOST_DATA_TEST_CASE(blocks_are_gathered_side_by_side, data::xrange(1, 34), size) {
    std::vector<ddl::chunk_range> held;
    for (int r = 0; r < size; ++r) held.push_back({r, 1});
    for (int round = 0; round < ddl::contract_round::count(size); ++round) {
        const auto before = held;
        for (int r = 0; r < size; ++r) {
            const auto at = [](auto& all, int rank) -> auto& { return all[static_cast<std::size_t>(rank)]; };
            const auto [first, count] = ddl::gathered_by_doubling(r, size, round);
            BOOST_TEST(first == at(before, r).first);
            BOOST_TEST(count == at(before, r).count);
            const ddl::contract_round peers{r, size, round};
            if (peers.from < 0) continue;
            const ddl::chunk_range theirs = at(before, peers.from);
            if (peers.of == ddl::testimony::all) {
                at(held, r) = theirs;
                continue;
            }
            const bool below = peers.of == ddl::testimony::below;
            BOOST_TEST((below ? theirs.first + theirs.count == first : first + count == theirs.first));
            at(held, r) = {below ? theirs.first : first, count + theirs.count};
        }
    }
    for (const auto& all : held) {
        BOOST_TEST(all.first == 0);
        BOOST_TEST(all.count == size);
    }
}

BOOST_AUTO_TEST_CASE(short_blocks_ride_if_each_message_of_theirs_does) {
    using ddl::exchanged_rider, ddl::gathered_rider;
    BOOST_TEST(gathered_rider::fits(marking_wire{3}, 1008, 4));
    BOOST_TEST(!gathered_rider::fits(marking_wire{3}, 1009, 4), "the last message brings all");
    BOOST_TEST(gathered_rider::fits(marking_wire{4}, 2016, 4), "the last message brings half");
    BOOST_TEST(gathered_rider::fits(marking_wire{8}, 2012, 4));
    BOOST_TEST(!gathered_rider::fits(marking_wire{8}, 2017, 4), "which is the longer one");
    BOOST_TEST(ddl::scattered_blocks_ride(marking_wire{4}, 2016, 4));
    BOOST_TEST(!ddl::scattered_blocks_ride(marking_wire{4}, 2017, 4), "two of the longest are too long");
    BOOST_TEST(!ddl::scattered_blocks_ride(marking_wire{6}, 6, 4));
    BOOST_TEST(exchanged_rider::fits(marking_wire{4}, 2016));
    BOOST_TEST(!exchanged_rider::fits(marking_wire{4}, 2020));
    BOOST_TEST(!exchanged_rider::fits(marking_wire{6}, 4), "six ranks are no hypercube");
}

BOOST_AUTO_TEST_CASE(short_blocks_and_shorter_vectors_go_directly_among_few_ranks) {
    using cut = ddl::load_cut;
    constexpr auto all = ddl::flow::among_all;
    BOOST_TEST(cut::rides_directly(marking_wire{3}, 4032));
    BOOST_TEST(!cut::rides_directly(marking_wire{3}, 4033));
    BOOST_TEST(cut::rides_directly(marking_wire{8}, 4032));
    BOOST_TEST(!cut::rides_directly(marking_wire{9}, 4));
    BOOST_TEST(!cut::rides_directly(marking_wire{2}, 4), "two ranks meet in one round");
    BOOST_TEST(cut::goes_directly(marking_wire{4}, 2048, all));
    BOOST_TEST(!cut::goes_directly(marking_wire{4}, 2049, all));
    BOOST_TEST(cut::goes_directly(marking_wire{3}, 256, all));
    BOOST_TEST(!cut::goes_directly(marking_wire{3}, 257, all));
    for (const int ranks : {4, 8}) {
        BOOST_TEST(cut::goes_directly(marking_wire{ranks}, 4032, ddl::flow::from_root), "all that rides");
        BOOST_TEST(!cut::goes_directly(marking_wire{ranks}, 4033, ddl::flow::from_root));
    }
    BOOST_TEST(!cut::goes_directly(marking_wire{3}, 257, ddl::flow::from_root));
    BOOST_TEST(!cut::goes_directly(crowded_wire{4}, 2049, ddl::flow::from_root));
    BOOST_TEST(cut::goes_directly(far_wire{3}, 2048, all), "where no message is a quick one");
    const cut folded{near_wire{8}, 2048, 4, ddl::flow::among_all};
    BOOST_TEST((folded.direct && folded.pieces == 0));
    BOOST_TEST((!cut{near_wire{8}, 2052, 4, ddl::flow::among_all}.direct));
    for (const int ranks : {3, 8}) BOOST_TEST(!cut::goes_directly(crowded_wire{ranks}, 4, all), "fewer messages pay");
    for (const int ranks : {4, 5, 6, 7}) BOOST_TEST(cut::goes_directly(crowded_wire{ranks}, 4, all));
    BOOST_TEST(cut::goes_directly(spacious_wire{3}, 4, all), "one step for two");
    for (const int ranks : {4, 5, 6, 7, 8}) {
        BOOST_TEST(!cut::goes_directly(spacious_wire{ranks}, 0, all), "rounds, where nobody waits for a core");
        BOOST_TEST(!cut::goes_directly(spacious_wire{ranks}, 256, ddl::flow::to_root));
        const bool in_pairs = ranks == 4 || ranks == 8;
        BOOST_TEST(cut::goes_directly(spacious_wire{ranks}, 257, ddl::flow::to_root) != in_pairs);
    }
}

BOOST_DATA_TEST_CASE(what_is_folded_directly_is_folded_as_by_doubling, data::xrange(3, ddl::most_direct_ranks + 1),
                     size) {
    std::vector<std::string> spelled;
    const auto joined_as = [&](const std::string& left, const std::string& right) {
        spelled.push_back("(" + left + right + ")");
        return spelled.back();
    };
    std::vector<std::string> held;
    for (int r = 0; r < size; ++r) held.push_back(std::to_string(r));
    for (int round = 0; round < ddl::contract_round::count(size); ++round) {
        const auto before = held;
        for (int r = 0; r < size; ++r) {
            const ddl::contract_round peers{r, size, round};
            if (peers.from < 0) continue;
            const auto& arrived = before[static_cast<std::size_t>(peers.from)];
            auto& ours = held[static_cast<std::size_t>(r)];
            if (peers.of == ddl::testimony::all) ours = arrived;
            else ours = peers.of == ddl::testimony::below ? joined_as(arrived, ours) : joined_as(ours, arrived);
        }
    }

    roomy_wire wire;
    wire.ranks = size;
    const ddl::contract_room room{wire, 0};
    const auto body = [](const std::byte* at) { return reinterpret_cast<const char*>(at); };
    for (int r = 0; r < size; ++r) std::strcpy(reinterpret_cast<char*>(room.arrival(r)), std::to_string(r).c_str());
    const std::byte* const result = ddl::fold_as_by_doubling(
        room, size, 1,
        [&](ddl::testimony of, const std::byte* ours, const std::byte* arrived, std::byte* to, std::size_t bytes) {
            BOOST_TEST((of == ddl::testimony::above));
            BOOST_TEST(bytes == 1U);
            BOOST_TEST(to == arrived);
            std::strcpy(reinterpret_cast<char*>(to), joined_as(body(ours), body(arrived)).c_str());
        });
    for (const std::string& each : held) BOOST_TEST(body(result) == each);
}

BOOST_AUTO_TEST_CASE(pieces_from_or_to_a_root_follow_a_contract_where_its_rounds_are_no_loss) {
    const auto follow = [](auto wire, std::size_t bytes) {
        return ddl::pieces_keep_up(wire, ddl::load_cut{wire, bytes, 4, ddl::flow::to_root});
    };
    BOOST_TEST(follow(near_wire{3}, 8192));
    BOOST_TEST(!follow(near_wire{3}, 8196), "two rounds and two copies more");
    BOOST_TEST(follow(near_wire{4}, 12'000));
    BOOST_TEST(follow(crowded_wire{3}, 12'000), "fewer messages pay");
    BOOST_TEST(follow(far_wire{3}, 12'000), "a message's time is longer");
    BOOST_TEST(!follow(spacious_wire{3}, 4100));
    BOOST_TEST(follow(spacious_wire{4}, 8192));
    BOOST_TEST(!follow(spacious_wire{4}, 8196));
}

BOOST_AUTO_TEST_CASE(blocks_follow_heads_if_none_is_of_too_many_pieces_be_it_shorter) {
    const coarse_wire wire{{5}};
    const std::size_t longest = (std::size_t{128} << 10) / sizeof(float) + 1;  // one piece; less than that is 16
    BOOST_TEST((ddl::blocks_follow<float>(wire, {5 * longest, 5})));
    BOOST_TEST(!(ddl::blocks_follow<float>(wire, {5 * longest - 1, 5})));
    BOOST_TEST((ddl::blocks_follow<float>(wire, {5 * longest + 1, 5})));
}

BOOST_AUTO_TEST_CASE(a_payload_rides_in_the_message_of_the_contract_or_follows_in_pieces) {
    const auto pieces = [](auto wire, std::size_t bytes, ddl::flow way = ddl::flow::among_all) {
        return ddl::load_cut{wire, bytes, 4, way}.pieces;
    };
    BOOST_TEST(pieces(near_wire{}, 240) == 0U);
    BOOST_TEST(pieces(near_wire{}, 244) == 1U, "with its head it would be longer than a quick message");
    BOOST_TEST(pieces(near_wire{}, 512) == 2U);
    BOOST_TEST(pieces(near_wire{}, 516) == 0U);
    BOOST_TEST(pieces(near_wire{2}, 256) == 1U);
    BOOST_TEST(pieces(near_wire{2}, 260) == 0U, "two ranks send one message rather than three");
    BOOST_TEST(pieces(near_wire{3}, 260) == 0U, "of three ranks two do at a time");
    BOOST_TEST(pieces(marking_wire{}, 256) == 0U, "a mark takes no room");
    BOOST_TEST(pieces(marking_wire{}, 260) == 2U);
    BOOST_TEST(pieces(marking_wire{2}, 512) == 0U);
    BOOST_TEST(pieces(marking_wire{}, 4032) == 0U);
    BOOST_TEST(pieces(marking_wire{}, 4036) == 2U);
    BOOST_TEST(pieces(near_wire{}, 4016) == 0U);
    BOOST_TEST(pieces(near_wire{}, 4020) == 1U);
    BOOST_TEST(pieces(near_wire{}, 32'768) == 9U);
    BOOST_TEST(pieces(near_wire{}, 32'772) == 1U, "long ones are sent whole");
    BOOST_TEST(pieces(near_wire{}, 16'388, ddl::flow::to_root) == 1U, "sooner, where they go one way");
    BOOST_TEST(pieces(far_wire{}, 500) == 0U, "no message of its is a quick one");
    BOOST_TEST(pieces(far_wire{}, 8192) == 0U);
    BOOST_TEST(pieces(far_wire{}, 8196) == 1U);
    BOOST_TEST((ddl::load_cut{near_wire{}, 8100, 20, ddl::flow::among_all}.piece == 4020));
    BOOST_TEST((ddl::load_cut{near_wire{}, 65'536, 4, ddl::flow::among_all}.fits()));
    BOOST_TEST((!ddl::load_cut{near_wire{}, 65'540, 4, ddl::flow::among_all}.fits()));
}

BOOST_DATA_TEST_CASE(equal_calls_agree, data::xrange(1, 6), split) {
    const ddl::agreement all = joined({7, 7, 7, 7, 7}, static_cast<std::size_t>(split));
    BOOST_TEST(all.differs == -1);
    BOOST_TEST(all.lowest == 0);
    all.throw_if_differs(call_of(7), 3);
}

BOOST_DATA_TEST_CASE(the_lowest_rank_that_differs_is_found_however_ranks_are_joined,
                     data::xrange(0, 6) * data::xrange(1, 6), odd, split) {
    std::vector<std::size_t> counts(6, 7);
    counts[static_cast<std::size_t>(odd)] = 8;
    const ddl::agreement all = joined(counts, static_cast<std::size_t>(split));
    BOOST_TEST(all.lowest == 0);
    BOOST_TEST(all.differs == (odd == 0 ? 1 : odd));
    BOOST_TEST(all.first.count == counts[0]);
    BOOST_TEST(all.other.count == (odd == 0 ? 7U : 8U));
}

BOOST_DATA_TEST_CASE(all_hear_of_a_rank_that_asks_for_chunks_whatever_else_differs,
                     data::xrange(0, 5) * data::xrange(1, 5), asking, split) {
    std::vector<std::size_t> counts{7, 8, 7, 9, 9};
    counts[static_cast<std::size_t>(asking)] = asks;
    const ddl::agreement all = joined(counts, static_cast<std::size_t>(split));
    for (int rank = 0; rank < 5; ++rank) {
        const ddl::call own = call_of(counts[static_cast<std::size_t>(rank)]);
        BOOST_TEST((error_of([&] { all.throw_if_differs(own, rank); }).code() == ddl::errc::staged));
    }
}

BOOST_AUTO_TEST_CASE(each_rank_hears_of_another_than_itself) {
    const ddl::agreement all = joined({7, 7, 8, 9}, 2);
    const auto heard = [&](std::size_t count, int rank) {
        return std::string(error_of([&] { all.throw_if_differs(call_of(count), rank); }).what());
    };
    BOOST_TEST(heard(7, 0) ==
               "allreduce, rank 0, round 0: rank 2 brings 8 elements, this rank 7; pass equal counts on every rank");
    BOOST_TEST(heard(7, 1) ==
               "allreduce, rank 1, round 0: rank 2 brings 8 elements, this rank 7; pass equal counts on every rank");
    BOOST_TEST(heard(8, 2) ==
               "allreduce, rank 2, round 0: rank 0 brings 7 elements, this rank 8; pass equal counts on every rank");
    BOOST_TEST(heard(9, 3) ==
               "allreduce, rank 3, round 0: rank 0 brings 7 elements, this rank 9; pass equal counts on every rank");
}
