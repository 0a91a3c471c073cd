// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>
#include <ddl/scatter.hpp>
#include <ddl/schedule/chain.hpp>
#include <ddl/schedule/multi_ring.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <concepts>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "../collective/oracle.hpp"
#include "../collective/sweep.hpp"
#include "own_schedules.hpp"

namespace data = boost::unit_test::data;

// A view takes what can be called so, and nothing else.
static_assert(std::convertible_to<ddl::byte_range (*)(const ddl::transfer&), ddl::chunk_places>);
static_assert(!std::convertible_to<decltype(ddl::no_meanwhile), ddl::chunk_places>);

// What a machine's own header may say, here of a transport that only this program has.
struct coarse : ddl::recording {
    explicit coarse(ddl::recording&& from) : ddl::recording{std::move(from)} {}
};
template <>
inline constexpr ddl::segmenting ddl::segments_of<coarse>{.bytes = std::size_t{1} << 20, .depth = 4};

// Ranks that know themselves to be on one host.
struct housed : ddl::recording {
    explicit housed(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    static constexpr bool on_one_host() noexcept { return true; }
};
// The same where ranks half of four apart have one core between them.
struct sharing : housed {
    using housed::housed;
    bool beside(int peer) const noexcept { return (peer ^ rank()) == 2; }
};
template <>
inline constexpr ddl::segmenting ddl::host_segments_of<housed>{.bytes = 2000,
                                                               .depth = 3,
                                                               .short_message = 1000,
                                                               .short_bytes = 100,
                                                               .short_exchange = 500,
                                                               .short_beside = 800,
                                                               .combining = 4000};
template <>
inline constexpr ddl::segmenting ddl::host_segments_of<sharing> = ddl::host_segments_of<housed>;

// The same whose long operands go in pieces, too.
struct combining : housed {
    using housed::housed;
};
template <>
inline constexpr ddl::segmenting ddl::host_segments_of<combining>{
    .bytes = 2000, .depth = 3, .short_message = 1000, .short_bytes = 100, .long_operand = 1500, .combining = 4000};

// Ranks of one host that are more than its cores, or not.
template <bool Uncrowded>
struct cores_for_all : housed {
    using housed::housed;
    static constexpr bool uncrowded() noexcept { return Uncrowded; }
};
template <bool Uncrowded>
inline constexpr ddl::segmenting ddl::host_segments_of<cores_for_all<Uncrowded>> = ddl::host_segments_of<housed>;

// Ranks of one host who have found whether pieces arrive sooner: by default not.
struct settled : housed {
    explicit settled(ddl::recording&& from, bool pieces = false) : housed{std::move(from)}, pay{pieces} {}
    static constexpr ddl::segmenting whole_segments{
        .bytes = 2000, .depth = 3, .short_message = 200, .short_bytes = 100};
    bool pieces_pay() const noexcept { return pay; }
    bool pay;
};

// Ranks of one host who have tried how messages are best cut, or have not.
struct only_finding : housed {
    explicit only_finding(ddl::recording&& from, const ddl::segmenting* what) : housed{std::move(from)}, found{what} {}
    const ddl::segmenting* segments_here() const noexcept { return found; }
    const ddl::segmenting* found;
};
struct finding : only_finding {
    using only_finding::only_finding;
    static constexpr ddl::segmenting host_segments{.bytes = 3000, .depth = 3};
    static constexpr ddl::segmenting whole_segments{.bytes = 4000, .depth = 3};
    static bool pieces_pay() noexcept { return true; }
};
struct half_finding : only_finding {
    using only_finding::only_finding;
    static constexpr ddl::segmenting whole_segments{.bytes = 4000, .depth = 3};
};
struct overruled : finding {
    using finding::finding;
};
template <>
inline constexpr ddl::segmenting ddl::host_segments_of<overruled>{.bytes = 3000, .depth = 4};

// Notes in which order a rank that fails tells its peers and gives up on messages.
struct leaving : ddl::recording {
    explicit leaving(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    void fail(ddl::errc code, const char* words) noexcept {
        steps += 'f';
        ddl::recording::fail(code, words);
    }
    void cancel(ticket& given_up) noexcept {
        steps += 'c';
        ddl::recording::cancel(given_up);
    }
    std::string steps;
};

// Tickets that are small numbers, as the handles of many libraries are.
struct numbered : ddl::recording {
    struct ticket {
        int number = -1;
    };
    explicit numbered(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    ticket send(int peer, const void* data, std::size_t bytes, int tag) {
        return kept(ddl::recording::send(peer, data, bytes, tag));
    }
    ticket receive(int peer, void* data, std::size_t bytes, int tag) {
        return kept(ddl::recording::receive(peer, data, bytes, tag));
    }
    bool test(ticket& asked) { return asked.number < 0 || ddl::recording::test(message(asked)); }
    void cancel(ticket& given_up) noexcept {
        if (given_up.number >= 0) ddl::recording::cancel(message(given_up));
    }

private:
    ticket kept(ddl::recording::ticket posted) {
        messages.push_back(std::move(posted));
        return {static_cast<int>(messages.size()) - 1};
    }
    ddl::recording::ticket& message(ticket of) noexcept { return messages[static_cast<std::size_t>(of.number)]; }
    std::vector<ddl::recording::ticket> messages;
};

// Ranks of `Place` that count the messages that are under way.
template <class Place>
struct counting : Place {
    using Place::Place;
    explicit counting(ddl::recording&& from) : Place{std::move(from)} {}
    using ticket = typename Place::ticket;
    ticket send(int peer, const void* data, std::size_t bytes, int tag) {
        ++under_way;
        return Place::send(peer, data, bytes, tag);
    }
    ticket receive(int peer, void* data, std::size_t bytes, int tag) {
        ++under_way;
        return Place::receive(peer, data, bytes, tag);
    }
    ticket send_marked(int peer, const void* data, std::size_t bytes, std::uint32_t mark) {
        ++under_way;
        return Place::send_marked(peer, data, bytes, mark);
    }
    ticket receive_marked(int peer, void* data, std::size_t bytes) {
        ++under_way;
        return Place::receive_marked(peer, data, bytes);
    }
    bool test(ticket& message) {
        const bool ended = Place::test(message);
        under_way -= ended;
        return ended;
    }
    int under_way = 0;
};

namespace {

using every_place = std::tuple<places::messages<1>, places::messages<2>, places::messages<3>, places::messages<4>>;
constexpr ddl::segmenting cut = ddl::segments_of<ddl::recording>;
constexpr std::size_t segment = cut.length(1, sizeof(int), ddl::passage::one_way) / sizeof(int);

template <class Schedule, class Ranks>
void sums(Ranks& ranks, std::size_t count) {
    auto data = small_values<int>(ranks.rank(), count);
    ddl::allreduce<Schedule>(ranks, data);
    const auto expected = sums_of_small_values(ranks.size(), count);
    require_values(
        data, [&](std::size_t i) { return expected[i]; }, labelled<Schedule>("allreduce", ranks, count));
}

/// An element longer than a segment.
struct vast {
    int values[20'000];
};
static_assert(sizeof(vast) > cut.length(sizeof(vast), 1, ddl::passage::one_way));
struct add_vast {
    static constexpr bool commutative = true;
    vast operator()(const vast& a, const vast& b) const {
        vast all = a;
        for (std::size_t k = 0; k < std::size(all.values); ++k) all.values[k] += b.values[k];
        return all;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(schedules_of_a_users_own_run_as_they_are_written, Place, every_place) {
    for (const int size : {1, 2, 4})
        Place::run(size, [](auto& ranks) {
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{9001}})
                schedules<own::array_ring, own::chain, own::gossip>::each(
                    [&]<class Schedule>() { sums<Schedule>(ranks, count); });
        });
}

BOOST_DATA_TEST_CASE(tickets_may_be_of_any_size, data::make({2, 3, 5}), size) {
    ddl::recording::run(size, [](ddl::recording& ranks) {
        numbered wire{std::move(ranks)};
        for (const std::size_t count : {std::size_t{1}, std::size_t{1001}, 3 * segment}) {
            sums<ddl::ring>(wire, count);
            sums<ddl::tuned>(wire, count);
        }
    });
}

BOOST_DATA_TEST_CASE(operands_that_share_a_lane_have_room_for_all_that_is_under_way, data::make({9, 10}), size) {
    ddl::recording::run(size, [](ddl::recording& ranks) { sums<own::fan>(ranks, 2 * (cut.depth + 1) * segment); });
}

/// A circle in which ranks send first what they combine last: a window that is full on one side must not close the other.
struct crosswise {
    static constexpr int chunks(int) noexcept { return 2; }
    static constexpr int rounds(int size) noexcept { return size > 1 ? 1 : 0; }
    static constexpr ddl::transfer_list<4> round(int rank, int size, int) noexcept {
        using enum ddl::action;
        if (size != 2) return {};
        const int peer = 1 - rank;
        // rank 0 sends chunk 0, then 1, and rank 1 the other way round
        return {{{send, peer, rank}, {send, peer, peer}, {receive_reduce, peer, peer}, {receive_reduce, peer, rank}},
                4};
    }
};

BOOST_AUTO_TEST_CASE_TEMPLATE(long_chunks_are_cut_into_segments, Place, every_place) {
    constexpr int windows = under_thread_sanitizer ? 1 : 2;
    constexpr std::size_t length = windows * cut.depth * segment;
    Place::run(2, [](auto& ranks) {
        sums<ddl::tree>(ranks, length + 1);
        sums<ddl::recursive_doubling>(ranks, length);
        sums<own::chain>(ranks, 2 * length + 17);
        sums<ddl::recursive_halving>(ranks, 2 * length + 3);
        sums<crosswise>(ranks, 2 * length + segment);
    });
    Place::run(3, [](auto& ranks) {
        sums<ddl::direct>(ranks, 3 * length + 2);
        sums<own::gossip>(ranks, length + 1);
    });
}

BOOST_AUTO_TEST_CASE(many_lanes_share_the_messages_that_may_be_under_way) {
    places::messages<3>::run(18, [](auto& ranks) { sums<ddl::direct>(ranks, 18 * 4 * segment + 11); });
}

using enum ddl::passage;
static_assert(cut.length(1, 4, one_way) == cut.bytes && cut.length(1, 4, beside) == cut.bytes);
static_assert(cut.length(1, 24, one_way) % 24 == 0, "whole elements");
static_assert(cut.length(1, 1 << 20, one_way) == 1 << 20, "at least one");
constexpr ddl::segmenting near = ddl::host_segments_of<housed>;
static_assert(near.length(1000, 1, one_way) == 100 && near.length(1001, 1, one_way) == 2000 &&
              near.length(1000, 64, one_way) == 64);
static_assert(near.length(500, 1, both_ways) == 100 && near.length(501, 1, both_ways) == 2000,
              "sooner whole where two meet");
static_assert(near.length(800, 1, beside) == 100 && near.length(801, 1, beside) == 2000, "later on one core");
static_assert(ddl::segmenting{.bytes = 20, .depth = 1, .short_message = 9}.longest_short(beside) == 9,
              "no difference where none is named");
constexpr ddl::segmenting loading{
    .bytes = 2000, .depth = 1, .short_message = 1000, .short_bytes = 100, .short_exchange = 500, .short_load = 800};
static_assert(loading.load_length(800, 1, both_ways) == 100 && loading.load_length(801, 1, both_ways) == 2000,
              "what is copied first goes in pieces for longer");
static_assert(loading.length(800, 1, both_ways) == 2000 && loading.load_length(1000, 1, one_way) == 100);
static_assert(near.load_length(500, 1, both_ways) == 100 && near.load_length(501, 1, both_ways) == 2000);
static_assert(near.fingerprint() != cut.fingerprint());
static_assert(near.segments(2, 100) == 3 && near.segments(2, 0) == 3, "as many as may be under way");
static_assert(near.segments(2, 2000) == 2 && near.segments(2, 2001) == 1, "fewer of long operands");
static_assert(near.segments(2, 5000) == 1, "but one");
static_assert(cut.segments(2, 1 << 30) == cut.depth, "no limit");

BOOST_AUTO_TEST_CASE(an_element_longer_than_a_segment_is_a_segment) {
    places::messages<1>::run(2, [](auto& ranks) {
        const auto data = std::make_unique<vast[]>(2);
        for (std::size_t i = 0; i < 2; ++i)
            for (int& each : data[i].values) each = ranks.rank() + static_cast<int>(i);
        ddl::allreduce_plan<add_vast, vast, ddl::tree, ddl::recording>{ranks, data.get(), data.get(), 2}();
        for (std::size_t i = 0; i < 2; ++i)
            for (const int each : data[i].values) require(each == 1 + 2 * static_cast<int>(i), "another sum");
    });
}

BOOST_AUTO_TEST_CASE(a_rank_sends_what_its_program_says) {
    ddl::recording::run(3, [](auto& ranks) {
        std::vector<int> data(3 * 1000);
        ranks.clear_log();
        ddl::allreduce<ddl::ring, ddl::unchecked>(ranks, data);
        std::vector<ddl::recording::event> sends;
        for (const auto& one : ranks.log())
            if (one.kind == ddl::recording::direction::send) sends.push_back(one);
        require(sends.size() == 4, "two steps each way");
        for (const auto& one : sends)
            require(one.peer == (ranks.rank() + 1) % 3 && one.bytes == 1000 * sizeof(int),
                    "a third to the right each time");
    });
}

BOOST_AUTO_TEST_CASE(ranks_that_cut_messages_otherwise_do_not_run_together) {
    ddl::recording::run(2, [](ddl::recording& team) {
        coarse own{team.split(0, team.rank())};
        std::vector<float> values(100'000, 1.0F);
        bool refused = false;
        try {
            if (team.rank() == 0) ddl::allreduce(own, values);
            else ddl::allreduce(static_cast<ddl::recording&>(own), values);
        } catch (const ddl::error& failure) {
            refused = failure.code() == ddl::errc::mismatch &&
                      std::string{failure.what()}.find("was compiled with other limits") != std::string::npos;
        }
        require(refused, "no rank says so");
        ddl::allreduce(own, values);
        require(values[99'999] == 2.0F, "the communicator is as good as before");
    });
}

BOOST_AUTO_TEST_CASE(on_one_host_messages_are_cut_otherwise_and_short_ones_shorter) {
    ddl::recording::run(3, [](ddl::recording& team) {
        housed ranks{team.split(0, team.rank())};
        for (const std::size_t count :
             {0U, 1U, 20U, 21U, 22U, 25U, 26U, 250U, 251U, 501U, 750U, 753U, 4001U, 20'000U}) {
            sums<ddl::recursive_doubling>(ranks, count);
            sums<ddl::ring>(ranks, count);
            sums<own::gossip>(ranks, count);
        }
        const auto messages_of = [&](std::size_t count) {
            std::vector<int> data(count);
            ranks.clear_log();
            ddl::allreduce<ddl::ring, ddl::unchecked>(ranks, data);
            std::vector<std::size_t> lengths;
            for (const auto& one : ranks.log())
                if (one.kind == ddl::recording::direction::send) lengths.push_back(one.bytes);
            return lengths;
        };
        require(messages_of(3 * 125) == std::vector<std::size_t>(20, 100), "five segments a message");
        require(messages_of(3 * 126) == std::vector<std::size_t>(4, 504), "one segment a message");
    });
}

BOOST_AUTO_TEST_CASE(a_payload_that_a_contract_has_no_room_for_follows_it) {
    ddl::recording::run(2, [](ddl::recording& team) {
        housed ranks{team.split(0, team.rank())};
        const auto messages_of = [&](std::size_t count) {
            ranks.clear_log();
            sums<ddl::recursive_doubling>(ranks, count);
            return ranks.log().size();
        };
        require(messages_of(21) == 2, "84 bytes and 16 of the contract are a segment");
        require(messages_of(22) == 4, "the contract, and a message of its own beside it");
        require(messages_of(125) == 12, "five of them");
        require(messages_of(126) == 4, "one again, for both wait");
    });
}

/// Adds, and notes what is under way meanwhile.
struct add_and_look {
    static constexpr bool commutative = true;
    const int* under_way;
    std::atomic<int>* most;
    int operator()(int a, int b) const {
        if (*under_way > *most) *most = *under_way;
        return a + b;
    }
};

/// So many messages at most are under way to or from one of two ranks of `Place` while it combines what they exchange.
template <class Place, class Schedule>
int most_under_way(std::uint64_t seed, bool marks) {
    std::atomic<int> most{0};
    const auto run = [&](ddl::recording& team) {
        counting<Place> ranks{team.split(0, team.rank())};
        auto data = small_values<int>(ranks.rank(), 750);
        ddl::allreduce_plan<add_and_look, int, Schedule, counting<Place>>{ranks, data.data(), data.data(), data.size(),
                                                                          add_and_look{&ranks.under_way, &most}}();
        const auto expected = sums_of_small_values(2, 750);
        require_values(
            data, [&](std::size_t i) { return expected[i]; }, "in step");
    };
    ddl::recording::run(2, run, {.seed = seed, .delays = true, .eager_limit = 0, .marks = marks});
    return most;
}

BOOST_AUTO_TEST_CASE(ranks_of_one_host_that_exchange_operands_combine_in_step_and_others_at_once) {
    int behind_contract = 0, with_contract = 0, crowded = 0, crowded_with_contract = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        for (const bool marks : {false, true}) BOOST_TEST((most_under_way<housed, ddl::ring>(seed, marks)) == 0);
        BOOST_TEST((most_under_way<housed, ddl::recursive_halving>(seed, true)) == 0);
        BOOST_TEST((most_under_way<cores_for_all<true>, ddl::ring>(seed, true)) == 0);
        behind_contract += most_under_way<ddl::recording, ddl::ring>(seed, true);
        with_contract += most_under_way<ddl::recording, ddl::recursive_halving>(seed, true);
        crowded += most_under_way<cores_for_all<false>, ddl::ring>(seed, true);
        crowded_with_contract += most_under_way<cores_for_all<false>, ddl::recursive_halving>(seed, true);
    }
    BOOST_TEST(behind_contract > 0);
    BOOST_TEST(with_contract > 0);
    BOOST_TEST(crowded > 0, "one that shares its core does not wait for it to send");
    BOOST_TEST(crowded_with_contract > 0);
}

struct no_sum {
    static constexpr bool commutative = true;
    float operator()(float, float) const { throw std::domain_error("no such sum"); }
};

BOOST_AUTO_TEST_CASE(a_rank_that_fails_tells_its_peers_before_it_gives_up_on_messages) {
    for (const std::size_t segments : {20u, 4u})  // behind the contract, and beside it
        ddl::recording::run(2, [segments](ddl::recording& team) {
            leaving ranks{team.split(0, team.rank())};
            std::vector<float> data(segments * segment);
            bool threw = false;
            try {
                ddl::allreduce<ddl::recursive_doubling>(ranks, data, no_sum{});
            } catch (const std::exception&) { threw = true; }
            require(threw && ranks.steps.substr(0, 2) == "fc", "first it tells, then it cancels: " + ranks.steps);
        });
}

BOOST_AUTO_TEST_CASE(a_timeout_names_the_rank_that_is_waited_for) {
    // in this schedule what has come from others waits for sends, and those for the rank that is not there
    ddl::recording::run(
        3,
        [](auto& ranks) {
            if (ranks.rank() == 2) return;
            std::vector<int> data(5000);
            const ddl::error failure = error_of([&] { ddl::allreduce<own::gossip, ddl::unchecked>(ranks, data); });
            require(std::string{failure.what()}.find("rank 2 did not answer") != std::string::npos, failure.what());
        },
        {.eager_limit = 0, .limit = ddl::timeout{2}});
}

BOOST_AUTO_TEST_CASE(a_send_may_last_until_its_receive_has_come) {
    // no message is put by: programs that rely on it would hang
    ddl::recording::run(4,
                        [](auto& ranks) {
                            schedules<ddl::ring, ddl::direct, ddl::recursive_halving, ddl::recursive_doubling,
                                      ddl::tree, ddl::multi_ring<2>, own::gossip>::each([&]<class Schedule>() {
                                sums<Schedule>(ranks, 10);
                                sums<Schedule>(ranks, 5000);
                            });
                        },
                        {.eager_limit = 0, .limit = patient});
}

BOOST_DATA_TEST_CASE(nor_do_ranks_of_one_host_that_combine_in_step_wait_in_a_circle, data::make({2, 3, 4, 5, 8}),
                     size) {
    ddl::recording::run(size,
                        [](ddl::recording& team) {
                            housed ranks{team.split(0, team.rank())};
                            schedules<ddl::ring, ddl::direct, ddl::recursive_halving, ddl::recursive_doubling,
                                      ddl::tree, ddl::chain<3>, ddl::multi_ring<2>, own::array_ring, own::chain,
                                      own::gossip, crosswise>::each([&]<class Schedule>() {
                                // five segments a part: more than are under way
                                if (!std::same_as<Schedule, crosswise> || ranks.size() == 2)
                                    sums<Schedule>(ranks, static_cast<std::size_t>(ranks.size()) * 2500);
                            });
                        },
                        {.eager_limit = 0, .limit = patient});
}

/// Lengths of the messages that rank 0 of `size` sends `peer`, of a call that `collective(ranks)` makes.
template <class Ranks, class Collective>
std::vector<std::size_t> lengths_to(int peer, Collective collective, int size = 4) {
    std::vector<std::size_t> lengths;
    ddl::recording::run(size, [&](ddl::recording& team) {
        Ranks ranks{team.split(0, team.rank())};
        collective(ranks);
        if (ranks.rank() != 0) return;
        for (const ddl::recording::event& each : ranks.log())
            if (each.kind == ddl::recording::direction::send && each.peer == peer) lengths.push_back(each.bytes);
    });
    return lengths;
}

BOOST_AUTO_TEST_CASE(what_a_rank_of_one_host_sends_in_rounds_in_a_row_is_under_way_at_once) {
    // Of the tree's root rank 2 receives in the first round, and rank 1 in the next one.
    const auto serve_the_second_first = [](const auto& move) {
        std::atomic<bool> second_has_all{false};
        const auto run = [&](ddl::recording& team) {
            housed ranks{team.split(0, team.rank())};
            const double late = ddl::now() + 8;
            while (ranks.rank() == 2 && !second_has_all && ddl::now() < late) std::this_thread::yield();
            move(ranks);
            if (ranks.rank() == 1) second_has_all = true;
        };
        ddl::recording::run(4, run, {.eager_limit = 0, .limit = ddl::timeout{5}});
    };
    for (const std::size_t count : {40U, 1000U, 20'000U}) {
        const auto expected = small_values<int>(0, count);
        serve_the_second_first([&](housed& ranks) {
            auto data = small_values<int>(ranks.rank(), count);
            ddl::broadcast<ddl::tree, ddl::unchecked>(ranks, data);
            require_values(
                data, [&](std::size_t i) { return expected[i]; }, "broadcast");
        });
        serve_the_second_first([&](housed& ranks) {
            guarded<int> own(count / 4);
            ddl::scatter<ddl::tree, ddl::unchecked>(ranks, expected, own);
            require_values(
                own, [&](std::size_t i) { return expected[static_cast<std::size_t>(ranks.rank()) * (count / 4) + i]; },
                "scatter");
        });
    }
}

BOOST_AUTO_TEST_CASE(how_long_messages_are_that_are_cut_as_short_ones_depends_on_what_else_goes_on) {
    using lengths = std::vector<std::size_t>;
    const auto exchange = [](auto& ranks) {
        auto data = small_values<int>(ranks.rank(), 4 * 200);  // 800 bytes each
        std::vector<int> out(data.size());
        ddl::all_to_all<ddl::direct, ddl::unchecked>(ranks, data, out);
    };
    BOOST_TEST(lengths_to<housed>(1, exchange) == lengths(1, 800));
    BOOST_TEST(lengths_to<housed>(2, exchange) == lengths(1, 800));
    BOOST_TEST(lengths_to<settled>(2, exchange) == lengths(1, 800));
    BOOST_TEST(lengths_to<sharing>(1, exchange) == lengths(1, 800));
    BOOST_TEST(lengths_to<sharing>(2, exchange) == lengths(8, 100), "to the one on its core");
    const auto hand_out = [](auto& ranks) {
        std::vector<int> data(250, 7);
        ddl::broadcast<ddl::direct, ddl::unchecked>(ranks, data);
    };
    BOOST_TEST(lengths_to<housed>(1, hand_out) == lengths(10, 100), "nothing comes back");
    BOOST_TEST(lengths_to<sharing>(2, hand_out) == lengths(10, 100));
    BOOST_TEST(lengths_to<settled>(1, hand_out) == lengths(1, 1000), "where pieces do not pay");
}

BOOST_AUTO_TEST_CASE(long_operands_of_one_of_two_ranks_are_cut_as_short_ones) {
    using lengths = std::vector<std::size_t>;
    const auto reduction = [](std::size_t count) {
        return [count](auto& ranks) {
            const auto in = small_values<int>(ranks.rank(), count);
            std::vector<int> out(count);
            ddl::reduce<ddl::tree, ddl::unchecked>(ranks, in, out, ddl::sum{}, 1);
            for (std::size_t i = 0; i < count && ranks.rank() == 1; ++i)
                require(out[i] == sums_of_small_values(ranks.size(), count)[i], "another sum");
        };
    };
    BOOST_TEST(lengths_to<combining>(1, reduction(300), 2) == lengths(1, 1200));
    BOOST_TEST(lengths_to<combining>(1, reduction(375), 2) == lengths(15, 100));
    BOOST_TEST(lengths_to<combining>(1, reduction(375), 3) == lengths(1, 1500), "of more ranks");
    BOOST_TEST(lengths_to<housed>(1, reduction(375), 2) == lengths(1, 1500));
    const auto exchange = [](auto& ranks) { sums<ddl::recursive_halving>(ranks, 750); };
    BOOST_TEST(lengths_to<combining>(1, exchange, 2).back() == 1500U, "what goes both ways");
    const auto hand_out = [](auto& ranks) {
        std::vector<int> data(375, 7);
        ddl::broadcast<ddl::tree, ddl::unchecked>(ranks, data);
    };
    BOOST_TEST(lengths_to<combining>(1, hand_out, 2) == lengths(1, 1500), "what is not combined");
}

BOOST_AUTO_TEST_CASE(ranks_of_levels_may_know_otherwise_whether_pieces_pay) {
    ddl::recording::run(1, [](ddl::recording& alone) {
        const settled one{alone.split(0, 0), true}, other{alone.split(0, 0), false};
        require(&ddl::cut_of(one) != &ddl::cut_of(other), "one cuts otherwise");
        require(ddl::cut_fingerprint(one) == ddl::cut_fingerprint(other), "but that is no mismatch");
    });
}

BOOST_AUTO_TEST_CASE(messages_are_cut_as_ranks_have_found_unless_a_program_says_otherwise) {
    ddl::recording::run(1, [](ddl::recording& alone) {
        const ddl::segmenting own{.bytes = 1000, .depth = 2};
        const finding tried{alone.split(0, 0), &own}, untried{alone.split(0, 0), nullptr};
        require(&ddl::cut_of(tried) == &own, "what was found is not taken");
        require(ddl::cut_of(untried).bytes == 3000, "nothing was found");
        require(ddl::cut_fingerprint(tried) == ddl::cut_fingerprint(untried), "it is no mismatch");
        require(ddl::cut_of(overruled{alone.split(0, 0), &own}).depth == 4, "the program said otherwise");
        require(&ddl::cut_of(only_finding{alone.split(0, 0), &own}) == &own, "ranks need say nothing else");
        require(&ddl::cut_of(half_finding{alone.split(0, 0), &own}) == &own, "nor both of the others");
        require(ddl::cut_of(only_finding{alone.split(0, 0), nullptr}).bytes == std::size_t{1} << 20, "by default long");
    });
}

BOOST_AUTO_TEST_CASE(ranks_of_one_core_halve_with_the_contract_as_others_do) {
    for (const int size : {2, 4, 8})
        ddl::recording::run(size, [](ddl::recording& team) {
            sharing ranks{team.split(0, team.rank())};
            for (const std::size_t count : {250U, 300U, 399U, 401U, 799U, 801U, 1000U, 1601U})
                sums<ddl::recursive_halving>(ranks, count);
        });
}

/// What a call of `bytes` among so many ranks is explained to be.
template <class Ranks, class Init>
std::string explained(int size, std::size_t bytes, Init init) {
    std::string line;
    ddl::recording::run(size, [&](ddl::recording& team) {
        Ranks ranks{team.split(0, team.rank())};
        std::vector<int> data(bytes / sizeof(int));
        const std::string mine = ddl::explain(init(ranks, data)).c_str();
        if (ranks.rank() == 0) line = mine;
    });
    return line;
}
bool is(const std::string& line, const char* schedule) {
    return line.find(std::string{"ranks: "} + schedule + ", selected for this size") != std::string::npos;
}

BOOST_AUTO_TEST_CASE(few_ranks_of_one_host_speak_directly_sooner_and_keep_to_a_tree_for_longer) {
    const auto allreduce = [](auto& ranks, auto& data) { return ddl::allreduce_init(ranks, data); };
    const auto broadcast = [](auto& ranks, auto& data) { return ddl::broadcast_init(ranks, data); };
    BOOST_TEST(is(explained<housed>(6, 24'000, allreduce), "direct"));
    BOOST_TEST(is(explained<housed>(8, 24'000, allreduce), "direct"));
    BOOST_TEST(is(explained<leaving>(6, 24'000, allreduce), "recursive_doubling"));
    BOOST_TEST(is(explained<leaving>(8, 24'000, allreduce), "recursive_halving"));
    BOOST_TEST(is(explained<housed>(5, 300'000, broadcast), "tree"));
    BOOST_TEST(is(explained<housed>(8, 300'000, broadcast), "recursive_halving"));
    BOOST_TEST(is(explained<leaving>(5, 300'000, broadcast), "recursive_halving"));
    BOOST_TEST(is(explained<housed>(2, 40'000'000, broadcast), "tree"), "of two at any length");
    BOOST_TEST(is(explained<leaving>(2, 40'000'000, broadcast), "recursive_halving"));
}

// Ranks of one host that share cores, and pass messages whole.
struct crowded : settled {
    using settled::settled;
    static constexpr bool uncrowded() noexcept { return false; }
};
template <>
inline constexpr ddl::segmenting ddl::whole_segments_of<crowded> = ddl::host_segments_of<housed>;

BOOST_AUTO_TEST_CASE(of_ranks_that_share_cores_and_pass_messages_whole_few_go_out) {
    const auto allreduce = [](auto& ranks, auto& data) { return ddl::allreduce_init(ranks, data); };
    for (const int size : {3, 5, 6, 7, 8}) BOOST_TEST(is(explained<crowded>(size, 24'000, allreduce), "tree"));
    BOOST_TEST(is(explained<crowded>(4, 24'000, allreduce), "recursive_halving"));
    BOOST_TEST(is(explained<crowded>(8, 14'000, allreduce), "tree"));
    BOOST_TEST(is(explained<crowded>(7, 14'000, allreduce), "recursive_doubling"));
    BOOST_TEST(is(explained<crowded>(9, 24'000, allreduce), "recursive_doubling"));
    BOOST_TEST(is(explained<crowded>(8, 200'000, allreduce), "recursive_halving"));
}

// The same who are dealt to cores in turn.
struct dealt_crowd : crowded {
    using crowded::crowded;
    static constexpr bool dealt_in_turn() noexcept { return true; }
};

BOOST_AUTO_TEST_CASE(of_such_ranks_each_has_what_is_long_from_the_root) {
    const auto broadcast = [](auto& ranks, auto& data) { return ddl::broadcast_init(ranks, data); };
    for (const int size : {3, 4, 8}) {
        BOOST_TEST(is(explained<crowded>(size, 16'000, broadcast), "direct"));
        BOOST_TEST(is(explained<crowded>(size, 3 << 20, broadcast), "direct"));
        BOOST_TEST(is(explained<crowded>(size, 2'000, broadcast), "tree"));
    }
    BOOST_TEST(is(explained<crowded>(6, 1 << 20, broadcast), "tree"));
    BOOST_TEST(is(explained<crowded>(6, (1 << 20) + 4, broadcast), "direct"));
    BOOST_TEST(is(explained<crowded>(9, 3 << 20, broadcast), "recursive_halving"));
    for (const int size : {4, 8}) {
        BOOST_TEST(is(explained<dealt_crowd>(size, 12'000, broadcast), "tree"));
        BOOST_TEST(is(explained<dealt_crowd>(size, 16'000, broadcast), "direct"));
        BOOST_TEST(is(explained<dealt_crowd>(size, 3 << 20, broadcast), "direct"));
    }
    BOOST_TEST(is(explained<dealt_crowd>(4, 1 << 20, broadcast), "recursive_halving"));
    BOOST_TEST(is(explained<dealt_crowd>(8, 1 << 20, broadcast), "direct"));
    BOOST_TEST(is(explained<housed>(4, 3 << 20, broadcast), "chain"), "where messages cost little");
}

// Ranks of one host that share cores, and pass only long messages whole.
struct long_whole : settled {
    explicit long_whole(ddl::recording&& from) : settled{std::move(from), true} {}
    static constexpr bool uncrowded() noexcept { return false; }
};
template <>
inline constexpr ddl::segmenting ddl::host_segments_of<long_whole> = ddl::host_segments_of<housed>;
struct dealt_long_whole : long_whole {
    using long_whole::long_whole;
    static constexpr bool dealt_in_turn() noexcept { return true; }
};
template <>
inline constexpr ddl::segmenting ddl::host_segments_of<dealt_long_whole> = ddl::host_segments_of<housed>;

BOOST_AUTO_TEST_CASE(of_ranks_that_share_cores_and_pass_long_messages_whole_few_long_ones_go_out) {
    const auto allreduce = [](auto& ranks, auto& data) { return ddl::allreduce_init(ranks, data); };
    const auto broadcast = [](auto& ranks, auto& data) { return ddl::broadcast_init(ranks, data); };
    const auto reduce = [](auto& ranks, auto& data) { return ddl::reduce_init(ranks, data); };
    const auto all_gather = [](auto& ranks, auto& data) { return ddl::all_gather_init(ranks, data); };
    for (const int size : {3, 5, 7}) BOOST_TEST(is(explained<long_whole>(size, 64'000, allreduce), "tree"));
    BOOST_TEST(is(explained<long_whole>(8, 64'000, allreduce), "tree"));
    BOOST_TEST(is(explained<dealt_long_whole>(8, 64'000, allreduce), "recursive_halving"));
    BOOST_TEST(is(explained<long_whole>(4, 64'000, allreduce), "recursive_halving"));
    BOOST_TEST(is(explained<long_whole>(5, 300'000, allreduce), "recursive_halving"));
    for (const int size : {3, 4, 5, 6, 7, 8}) {
        BOOST_TEST(is(explained<long_whole>(size, 60'000, broadcast), "direct"));
        BOOST_TEST(is(explained<long_whole>(size, 3 << 20, broadcast), "direct"));
        BOOST_TEST(is(explained<long_whole>(size, 2'000, broadcast), "tree"));
        BOOST_TEST(is(explained<long_whole>(size, 1 << 20, reduce), "tree"));
        BOOST_TEST(is(explained<long_whole>(size, static_cast<std::size_t>(size) * 8'000, all_gather), "direct"));
    }
    BOOST_TEST(is(explained<long_whole>(9, 3 << 20, broadcast), "recursive_halving"));
    BOOST_TEST(is(explained<long_whole>(3, 30 << 20, reduce), "tree"));
    BOOST_TEST(is(explained<dealt_long_whole>(8, 1 << 20, reduce), "recursive_halving"));
    BOOST_TEST(is(explained<long_whole>(4, 100'000, all_gather), "recursive_halving"));
    BOOST_TEST(is(explained<dealt_long_whole>(4, 100'000, all_gather), "direct"));
    BOOST_TEST(is(explained<long_whole>(8, 100'000, all_gather), "recursive_halving"));
}

BOOST_AUTO_TEST_CASE(what_leaves_whole_on_one_host_is_copied_for_a_contract_where_a_reduction_saves_rounds) {
    const auto broadcast = [](auto& ranks, auto& data) { return ddl::broadcast_init(ranks, data); };
    const auto reduce = [](auto& ranks, auto& data) { return ddl::reduce_init(ranks, data); };
    const auto goes_along = [](const std::string& line) {
        return line.find("the messages that compare the calls") != std::string::npos;
    };
    BOOST_TEST(!goes_along(explained<housed>(4, 24'000, broadcast)));
    BOOST_TEST(!goes_along(explained<housed>(2, 8'000, broadcast)));
    BOOST_TEST(goes_along(explained<leaving>(4, 24'000, broadcast)), "between hosts it saves a message's time");
    BOOST_TEST(goes_along(explained<leaving>(2, 12'000, broadcast)));
    BOOST_TEST(goes_along(explained<housed>(4, 24'000, reduce)));
    BOOST_TEST(!goes_along(explained<housed>(3, 24'000, reduce)));
    BOOST_TEST(goes_along(explained<leaving>(3, 24'000, reduce)));
    BOOST_TEST(goes_along(explained<housed>(3, 800, reduce)), "what rides is no message of its own");
}

BOOST_AUTO_TEST_CASE(few_ranks_of_one_host_pass_on_long_messages_along_a_chain) {
    const auto reduce = [](auto& ranks, auto& data) { return ddl::reduce_init(ranks, data); };
    BOOST_TEST(is(explained<housed>(3, 2 << 20, reduce), "recursive_halving"));
    BOOST_TEST(is(explained<housed>(3, (2 << 20) + 4, reduce), "chain"));
    BOOST_TEST(is(explained<housed>(8, 3 << 20, reduce), "chain"));
    BOOST_TEST(is(explained<housed>(9, 3 << 20, reduce), "recursive_halving"));
    BOOST_TEST(is(explained<leaving>(4, 3 << 20, reduce), "recursive_halving"), "on several hosts");
}

BOOST_AUTO_TEST_CASE(few_ranks_of_one_host_move_long_blocks_in_one_round) {
    const auto gathered = [](auto& ranks, auto& data) { return ddl::all_gather_init(ranks, data); };
    BOOST_TEST(is(explained<housed>(4, 8 << 20, gathered), "recursive_halving"));
    BOOST_TEST(is(explained<housed>(4, 9 << 20, gathered), "direct"));
    BOOST_TEST(is(explained<housed>(2, 9 << 20, gathered), "recursive_halving"));
    BOOST_TEST(is(explained<housed>(9, 9 << 20, gathered), "recursive_halving"));
    BOOST_TEST(is(explained<leaving>(4, 9 << 20, gathered), "recursive_halving"));
    const auto exchanged = [](auto& ranks, auto& data) { return ddl::all_to_all_init(ranks, data); };
    BOOST_TEST(is(explained<housed>(4, 9 << 20, exchanged), "direct"));
    BOOST_TEST(is(explained<housed>(9, 9 << 22, exchanged), "ring"));
    BOOST_TEST(is(explained<leaving>(4, 9 << 20, exchanged), "ring"));
}
