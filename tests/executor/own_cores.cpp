// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "overtaking.hpp"

namespace data = boost::unit_test::data;

// Ranks that have a core each on one host: there rounds often take the place of messages from each rank to each.
struct on_own_cores : ddl::recording {
    explicit on_own_cores(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    static constexpr ddl::segmenting host_segments{.bytes = std::size_t{1} << 20,
                                                   .depth = 40,
                                                   .short_message = std::size_t{16} << 10,
                                                   .short_bytes = 3968,
                                                   .quick_message = 512,
                                                   .quick_bytes = 256,
                                                   .combining = std::size_t{1} << 20};
    static constexpr bool on_one_host() noexcept { return true; }
    static constexpr bool uncrowded() noexcept { return true; }
};

/// The same, though they were dealt to something in turn: rounds of theirs do not keep blocks in order.
struct dealt_on_own_cores : on_own_cores {
    using on_own_cores::on_own_cores;
    static constexpr bool dealt_in_turn() noexcept { return true; }
};

namespace {

/// What rank 0 of `size` sends in `call`.
template <class Call>
std::size_t sent_by(int size, Call call) {
    std::size_t sent = 0;
    ddl::recording::run(size,
                        [&](ddl::recording& wire) {
                            on_own_cores ranks{wire.split(0, wire.rank())};
                            ranks.clear_log();
                            call(ranks);
                            if (ranks.rank() != 0) return;
                            for (const ddl::recording::event& each : ranks.log())
                                sent += each.kind == ddl::recording::direction::send;
                        },
                        {.marks = true});
    return sent;
}
template <class Ranks>
void gathers(Ranks& ranks, std::size_t each) {
    const std::vector<int> block(each, ranks.rank());
    std::vector<int> all(each * static_cast<std::size_t>(ranks.size()));
    ddl::all_gather(ranks, block, all);
    for (std::size_t i = 0; i < all.size(); ++i) require(all[i] == static_cast<int>(i / each), "a block");
}

}  // namespace

BOOST_AUTO_TEST_CASE(few_messages_leave_where_rounds_do) {
    const auto meet = [](on_own_cores& ranks) { ddl::barrier(ranks); };
    const auto sum = [](on_own_cores& ranks) { sums<ddl::tuned>(ranks, 300); };
    const auto gather = [](std::size_t each) { return [=](on_own_cores& ranks) { gathers(ranks, each); }; };
    BOOST_TEST(sent_by(3, meet) == 2, "each to each");
    BOOST_TEST(sent_by(4, meet) == 2);
    BOOST_TEST(sent_by(8, meet) == 3);
    BOOST_TEST(sent_by(4, sum) == 2);
    BOOST_TEST(sent_by(8, sum) == 3);
    BOOST_TEST(sent_by(4, gather(16)) == 2, "all of it is quick");
    BOOST_TEST(sent_by(4, gather(64)) == 3, "blocks alone are");
    BOOST_TEST(sent_by(4, gather(65)) == 2);
    BOOST_TEST(sent_by(8, gather(64)) == 3);
    BOOST_TEST(sent_by(6, gather(64)) == 5, "no power of two");
}

BOOST_DATA_TEST_CASE(what_is_long_follows_a_contract_to_or_from_a_root_only_where_no_round_is_added, data::xrange(2, 9),
                     size) {
    const bool in_pairs = size == 2 || size == 4 || size == 8;
    ddl::recording::run(size, [&](ddl::recording& wire) {
        on_own_cores ranks{wire.split(0, wire.rank())};
        const auto goes_along = [&](std::size_t bytes) {
            const auto cut = [&](ddl::flow way) { return ddl::whole_load<char>(ranks, bytes, way); };
            const bool outward = ddl::copies_pay(ranks, cut(ddl::flow::from_root));
            require(outward == ddl::folds_fit<ddl::sum>(ranks, cut(ddl::flow::to_root), ddl::flow::to_root),
                    "both ways");
            return outward;
        };
        require(goes_along(3000), "it rides");
        require(goes_along(8192) == in_pairs, "in pieces");
        require(!goes_along(8193), "longer than what may ride");
    });
}

BOOST_AUTO_TEST_CASE(three_five_and_seven_ranks_speak_directly_where_rounds_would_be_more) {
    // the schedules of an allreduce, a broadcast and a reduce of so many KiB
    const auto of_all = [](int size, std::size_t kibi) {
        std::string names;
        ddl::recording::run(size, [&](ddl::recording& wire) {
            on_own_cores ranks{wire.split(0, wire.rank())};
            std::vector<float> data(kibi * 256);
            const auto add_name = [&](const std::string& line) {
                const std::size_t name = line.find("ranks: ") + 7;
                if (ranks.rank() == 0) names += line.substr(name, line.find(',', name) - name) + " ";
            };
            add_name(ddl::explain(ddl::allreduce_init(ranks, data)));
            add_name(ddl::explain(ddl::broadcast_init(ranks, data)));
            add_name(ddl::explain(ddl::reduce_init(ranks, data)));
        });
        return names;
    };
    BOOST_TEST(of_all(3, 1) == "recursive_doubling direct direct ");
    BOOST_TEST(of_all(3, 32) == "direct direct direct ");
    BOOST_TEST(of_all(5, 1) == "recursive_doubling tree tree ");
    BOOST_TEST(of_all(5, 32) == "direct tree direct ");
    BOOST_TEST(of_all(5, 128) == "direct direct direct ");
    BOOST_TEST(of_all(7, 32) == "direct tree tree ");
    BOOST_TEST(of_all(4, 32) == "recursive_halving tree tree ", "a power of two");
}

BOOST_DATA_TEST_CASE(blocks_stay_in_order_where_rounds_begin_halves_apart, data::make({4, 8}), size) {
    ddl::recording::run(size, [](ddl::recording& wire) {
        dealt_on_own_cores ranks{wire.split(0, wire.rank())};
        for (const std::size_t each : {1U, 100U, 400U}) gathers(ranks, each);
    });
}

BOOST_DATA_TEST_CASE(whatever_the_way_all_have_what_they_should, data::xrange(2, 10), size) {
    overtaking<on_own_cores>(size, static_cast<std::uint64_t>(size), [](on_own_cores& ranks) {
        for (const std::size_t count : {0U, 1U, 17U, 129U, 513U, 1201U, 2500U, 9001U}) {
            sums<ddl::tuned>(ranks, count);
            const auto expected = sums_of_small_values(ranks.size(), count);
            const auto values = small_values<int>(ranks.rank(), count);
            const auto own = ddl::block(count, ranks.size(), ranks.rank());
            guarded<int> block{own.count};
            ddl::reduce_scatter(ranks, values, block);
            require_values(
                block, [&](std::size_t i) { return expected[own.first + i]; },
                labelled<ddl::tuned>("reduce_scatter", ranks, count));
            guarded<int> all{count};
            ddl::all_gather(ranks, block, all);
            require_values(
                all, [&](std::size_t i) { return expected[i]; }, labelled<ddl::tuned>("all_gather", ranks, count));
            const int root = static_cast<int>(count) % ranks.size();
            auto folded = small_values<int>(ranks.rank(), count);
            ddl::reduce(ranks, folded, ddl::sum{}, root);
            require_values(
                folded,
                [&](std::size_t i) { return ranks.rank() == root ? expected[i] : small_value(ranks.rank(), i); },
                labelled<ddl::tuned>("reduce", ranks, count));
            auto spread = small_values<int>(ranks.rank(), count);
            ddl::broadcast(ranks, spread, root);
            require_values(
                spread, [&](std::size_t i) { return small_value(root, i); },
                labelled<ddl::tuned>("broadcast", ranks, count));
            const auto exchanged = exchanged_values(ranks.rank(), count);
            auto blocks = small_values<int>(ranks.rank(), count * static_cast<std::size_t>(ranks.size()));
            ddl::all_to_all(ranks, blocks);
            require_values(blocks, exchanged, labelled<ddl::tuned>("all_to_all", ranks, count));
        }
    });
}

BOOST_AUTO_TEST_CASE(who_goes_directly_and_who_goes_in_rounds_hear_of_each_other) {
    const auto sums_of = [](std::size_t count) {
        return [=](on_own_cores& ranks) {
            std::vector<int> values(count);
            ddl::allreduce(ranks, values);
        };
    };
    const std::vector<std::function<void(on_own_cores&)>> calls{
        [](on_own_cores& ranks) { ddl::barrier(ranks); },
        sums_of(1),
        sums_of(1000),
        sums_of(20'000),
        [](on_own_cores& ranks) { gathers(ranks, 4); },
        [](on_own_cores& ranks) { gathers(ranks, 64); },
        [](on_own_cores& ranks) { gathers(ranks, 500); },
        [](on_own_cores& ranks) {
            std::vector<int> values(400);
            ddl::reduce<ddl::tree>(ranks, values, ddl::sum{}, 2);
        },
        [](on_own_cores& ranks) {
            std::vector<int> values(100 * static_cast<std::size_t>(ranks.size()));
            ddl::all_to_all(ranks, values);
        },
    };
    const auto disagree = [&](int size, std::uint64_t seed, std::size_t most, std::size_t other) {
        const int alone = static_cast<int>(most * 3 + other) % size;
        overtaking<on_own_cores>(size, seed, [&](on_own_cores& ranks) {
            require_error(ddl::errc::mismatch, "", [&] { calls[ranks.rank() == alone ? other : most](ranks); });
            sums<ddl::tuned>(ranks, 3000);
        });
    };
    for (std::size_t most = 0; most < calls.size(); ++most)
        for (std::size_t other = 0; other < calls.size(); ++other) {
            if (most == other) continue;
            constexpr int sizes[] = {4, 6, 8};
            disagree(sizes[(most + other) % 3], 1 + most % 4, most, other);
        }
}
