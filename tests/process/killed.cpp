// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <random>

#include "team.hpp"

namespace data = boost::unit_test::data;

namespace {
/// Generous: a survivor looks at its peers every millisecond, on a machine that has other things to do.
constexpr double soon = 60;  // sooner than any timeout, on any machine

/// A stream of allreduces without an end.
struct stream {
    const char* name;
    memory kind;
    std::size_t count;
    bool blocks;
    void (*reduce)(ddl::shared_memory&, std::span<float>, std::span<float>);
};
std::ostream& operator<<(std::ostream& out, const stream& one) { return out << one.name; }

template <class Schedule>
void reduce_by(ddl::shared_memory& node, std::span<float> in, std::span<float> out) {
    ddl::allreduce<Schedule>(node, in, out);
}
void reduce_three_at_once(ddl::shared_memory& node, std::span<float> in, std::span<float> out) {
    std::vector<ddl::request> pending;
    for (int i = 0; i < 3; ++i) pending.push_back(ddl::allreduce_async(node, in, out));
    for (const auto& each : pending) each.wait();
}

const stream streams[] = {
    {"short vectors", memory::own, 100, true, reduce_by<ddl::tuned>},
    {"vectors that are copied", memory::own, 400'000, true, reduce_by<ddl::tuned>},
    {"vectors that are mapped", memory::mapped, 400'000, true, reduce_by<ddl::tuned>},
    {"a ring", memory::own, 100'000, true, reduce_by<ddl::ring>},
    {"short vectors in the background", memory::own, 100, false, reduce_three_at_once},
    {"mapped vectors in the background", memory::mapped, 100'000, false, reduce_three_at_once},
};

/// Reduces until something happens, with `limit` from where all ranks are under way. Whatever does, the input is as it was.
void reduce_for_ever(ddl::shared_memory& node, const stream& what, const marks& under_way,
                     ddl::timeout limit = ddl::timeout{100}) {
    room<float> in{node, what.kind, what.count};
    room<float> out{node, what.kind, what.count};
    fill(in.all(), node.rank());
    try {
        for (int turn = 0;; ++turn) {
            what.reduce(node, in.all(), out.all());
            if (turn == 3) {
                ddl::barrier(node);
                node.set_timeout(limit);
                under_way.leave();
            }
        }
    } catch (const ddl::error&) {
        expect_values("the input of a call that failed", in.all(), node.rank());
        throw;
    }
}

/// The failure itself, or the word of it that a later call finds; in either case it says what happened.
bool tells(const outcome& result, ddl::errc code, const std::string& words) {
    return (result.is(code) || result.is(ddl::errc::broken)) && result.mentions(words.c_str());
}
std::string ended(int victim) { return "rank " + std::to_string(victim) + " has ended"; }

void run_again(const std::string& job, int size) {
    children ranks;
    for (int rank = 0; rank < size; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, size, ddl::timeout{100}};
            auto values = values_of<float>(rank, 10'000);
            ddl::allreduce(node, values);
            expect_fold("allreduce", std::span{values}, size, ddl::sum{});
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}
}  // namespace

BOOST_DATA_TEST_CASE(a_killed_rank_is_named_to_all_survivors_soon, data::make(streams), what) {
    constexpr int size = 4;
    std::mt19937 random{7};
    const auto before = left_behind();
    for (int turn = 0; turn < 12; ++turn) {
        const std::string job = fresh_job();
        const int victim = turn % size;
        const marks under_way;
        children ranks;
        for (int rank = 0; rank < size; ++rank)
            ranks.start([&, rank] {
                ddl::shared_memory node{job, rank, size, ddl::timeout{100}};
                reduce_for_ever(node, what, under_way);
            });
        BOOST_REQUIRE(under_way.wait_for(size));
        sleep_for(std::uniform_real_distribution{0.0, 0.01}(random));
        ranks.kill(static_cast<std::size_t>(victim));
        const double killed_at = ddl::now();
        const auto results = ranks.finish();
        BOOST_TEST(ddl::now() - killed_at < soon);
        for (int rank = 0; rank < size; ++rank) {
            const outcome& result = results[static_cast<std::size_t>(rank)];
            if (rank == victim) BOOST_TEST(result.how == outcome::killed, result);
            else
                BOOST_TEST(tells(result, ddl::errc::peer_lost, ended(victim)),
                           "rank " << rank << " of a team whose rank " << victim << " was killed " << result);
        }
        if (turn % 4 == 0) run_again(job, size);
    }
    BOOST_TEST(left_behind() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(when_all_but_one_are_killed_that_one_learns_of_it) {
    constexpr int size = 5;
    for (const std::size_t survivor : {0U, 2U, 4U}) {
        const std::string job = fresh_job();
        const marks under_way;
        children ranks;
        for (int rank = 0; rank < size; ++rank)
            ranks.start([&, rank] {
                ddl::shared_memory node{job, rank, size, ddl::timeout{100}};
                reduce_for_ever(node, streams[1], under_way);
            });
        BOOST_REQUIRE(under_way.wait_for(size));
        for (std::size_t rank = 0; rank < size; ++rank)
            if (rank != survivor) ranks.kill(rank);
        const double killed_at = ddl::now();
        const auto results = ranks.finish();
        BOOST_TEST(ddl::now() - killed_at < soon);
        BOOST_TEST((results[survivor].is(ddl::errc::peer_lost) && results[survivor].mentions("has ended")),
                   results[survivor]);
        run_again(job, size);
    }
}

BOOST_AUTO_TEST_CASE(a_killed_rank_is_lost_to_a_group_and_to_its_parent) {
    constexpr int size = 4;
    const std::string job = fresh_job();
    const marks under_way;
    children ranks;
    for (int rank = 0; rank < size; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, size, ddl::timeout{100}};
            ddl::shared_memory group = node.split(rank % 2, 0);
            std::vector<float> values(1000);
            under_way.leave();
            if (rank % 2 == 1) {
                // found here, or heard from those who wait in the parent, by its number there
                const ddl::error failure = [&] {
                    try {
                        for (;;) ddl::allreduce(group, values);
                    } catch (const ddl::error& why) { return why; }
                }();
                const std::string words = failure.what();
                EXPECT(failure.code() == ddl::errc::peer_lost);
                EXPECT(words.find(ended(1)) != std::string::npos || words.find(ended(3)) != std::string::npos);
            } else {
                ddl::allreduce(group, values);  // which has lost nobody
            }
            ddl::allreduce(node, values);
        });
    BOOST_REQUIRE(under_way.wait_for(size));
    ranks.kill(3);
    const auto results = ranks.finish();
    for (const std::size_t rank : {0U, 1U, 2U})
        BOOST_TEST(tells(results[rank], ddl::errc::peer_lost, ended(3)), results[rank]);
}

BOOST_DATA_TEST_CASE(a_stopped_rank_is_a_timeout_for_all_who_wait_for_it, data::make(streams), what) {
    constexpr int size = 4;
    constexpr double limit = 0.5;
    for (const int victim : {0, 3}) {
        const std::string job = fresh_job();
        const marks under_way;
        const marks given_up;
        children ranks;
        for (int rank = 0; rank < size; ++rank)
            ranks.start([&, rank] {
                ddl::shared_memory node{job, rank, size, ddl::timeout{100}};
                try {
                    reduce_for_ever(node, what, under_way, ddl::timeout{limit});
                } catch (const ddl::error&) {
                    under_way.leave();  // on a slow machine even before there is a victim
                    given_up.leave();
                    expect_error(ddl::errc::broken, "broken since an earlier call",
                                 [&] { ddl::broadcast(node, std::vector<int>(1)); });
                    throw;
                }
            });
        BOOST_REQUIRE(under_way.wait_for(size));
        ranks.signal(static_cast<std::size_t>(victim), SIGSTOP);
        const double stopped_at = ddl::now();
        BOOST_TEST(given_up.wait_for(size - 1));
        BOOST_TEST(ddl::now() - stopped_at < limit + soon);
        ranks.signal(static_cast<std::size_t>(victim), SIGCONT);
        const auto results = ranks.finish();
        for (const outcome& result : results)  // in a ring the next rank is blamed, which waits itself
            BOOST_TEST(tells(result, ddl::errc::timeout, "did not arrive within 0.5 s"), result);
    }
}
