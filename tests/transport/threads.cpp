// SPDX-License-Identifier: Apache-2.0
#include <ddl/buffer.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>

#include "../collective/places.hpp"
#include "../collective/require.hpp"
#include "../process/children.hpp"

namespace data = boost::unit_test::data;
using ddl::threads;

static_assert(ddl::memory_transport<threads> && !ddl::message_transport<threads>);
static_assert(std::is_move_constructible_v<threads> && !std::is_copy_constructible_v<threads>);

namespace {
const ddl::call_site here{"test", 3};
}

BOOST_DATA_TEST_CASE(every_rank_runs_once_and_knows_its_place, data::make({1, 2, 5, 16}), ranks) {
    std::vector<int> seen(static_cast<std::size_t>(ranks));
    threads::run(ranks, [&](threads& team) { seen[static_cast<std::size_t>(team.rank())] += team.size(); });
    BOOST_TEST(seen == std::vector<int>(static_cast<std::size_t>(ranks), ranks), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_team_has_one_rank_or_more) {
    const auto failure = error_of([] { threads::run(0, [](threads&) {}); });
    BOOST_TEST(failure.what() == "threads::run: 0 ranks; ask for one or more");
    BOOST_TEST((failure.code() == ddl::errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_to_be_had_is_an_error) {
    threads::run(1, [](threads& team) {
        for (const std::size_t bytes : {std::size_t{1} << 63, static_cast<std::size_t>(-1)}) {
            require_error(ddl::errc::out_of_memory, "bytes are not to be had; use less", [&] {
                ddl::buffer<char>{team, bytes};
            });
            bool refused = false;
            try {
                team.deallocate(team.allocate(bytes), bytes);
            } catch (const std::bad_alloc&) { refused = true; }
            require(refused, "more than there is was handed out");
        }
    });
}

BOOST_AUTO_TEST_CASE(what_is_written_before_advance_is_seen_after_await) {
    threads::run(2, [](threads& team) {
        for (int i = 1; i <= 200; ++i) {
            team.begin(here);
            if (team.rank() == 0) std::memcpy(team.window(0), &i, sizeof i);
            const auto written = team.advance();
            team.await(0, written, here);
            int seen = 0;
            std::memcpy(&seen, team.window(0), sizeof seen);
            require(seen == i, "something older was seen");
            const auto read = team.advance();
            team.await(1, read, here);
        }
    });
}

BOOST_AUTO_TEST_CASE(counters_grow_by_one) {
    threads::run(1, [](threads& team) {
        const auto first = team.advance();
        require(team.advance() == first + 1, "it grew by something else");
        team.await(0, first, here);  // long past
    });
}

BOOST_AUTO_TEST_CASE(slots_change_from_call_to_call_and_are_every_ranks_own) {
    threads::run(2, [](threads& team) {
        team.begin(here);
        std::byte* const first = team.slot(team.rank());
        require(first != team.slot(1 - team.rank()), "two ranks have one slot");
        team.begin(here);
        require(first != team.slot(team.rank()), "a late reader would see the next call");
        team.begin(here);
        require(first == team.slot(team.rank()), "there are two");
        require(reinterpret_cast<std::uintptr_t>(first) % 64 == 0, "slots are not aligned");
        require(reinterpret_cast<std::uintptr_t>(team.window(1)) % 4096 == 0, "windows are not aligned");
    });
}

BOOST_AUTO_TEST_CASE(any_memory_can_be_mapped) {
    threads::run(1, [](threads& team) {
        int value = 7;
        const auto address = team.address_of(&value, sizeof value);
        require(address != 0, "it cannot");
        require(team.mapped(0, address, sizeof value) == reinterpret_cast<std::byte*>(&value), "it is elsewhere");
    });
}

BOOST_AUTO_TEST_CASE(scratch_stays_until_more_is_asked_for) {
    threads::run(1, [](threads& team) {
        std::byte* const small = team.scratch(100, ddl::scratch_for::fusion);
        std::memset(small, 1, 100);
        require(team.scratch(50, ddl::scratch_for::fusion) == small, "less was asked for, and it went");
        std::byte* const other = team.scratch(100, ddl::scratch_for::arrivals);
        require(other != small, "two uses share their memory");
        std::memset(team.scratch(1 << 20, ddl::scratch_for::fusion), 2, 1 << 20);
        require(team.scratch(100, ddl::scratch_for::arrivals) == other, "another use took it away");
        require(reinterpret_cast<std::uintptr_t>(other) % 64 == 0, "it is not aligned");
    });
}

BOOST_AUTO_TEST_CASE(every_rank_learns_every_value_in_rank_order) {
    threads::run(5, [](threads& team) {
        for (std::uint64_t i = 0; i < 20; ++i) {
            const auto all = team.exchange(10 * i + static_cast<std::uint64_t>(team.rank()), here);
            for (std::uint64_t peer = 0; peer < 5; ++peer) require(all[peer] == 10 * i + peer, "another value");
        }
    });
}

BOOST_AUTO_TEST_CASE(the_first_exception_is_thrown_by_run_and_wakes_the_others) {
    std::atomic<int> woken{0};
    const auto run = [&] {
        threads::run(
            3,
            [&](threads& team) {
                if (team.rank() == 2) throw std::domain_error("rank 2 has enough");
                require_error(ddl::errc::peer_lost, "a thread of the team left with an exception",
                              [&] { team.await(2, 1, here); });
                ++woken;
            },
            patient);
    };
    BOOST_CHECK_EXCEPTION(run(), std::domain_error,
                          [](const auto& e) { return std::strcmp(e.what(), "rank 2 has enough") == 0; });
    BOOST_TEST(woken == 2);
}

BOOST_AUTO_TEST_CASE(what_befell_a_rank_is_thrown_and_not_what_others_heard_of_it) {
    std::atomic<bool> left{false};
    const auto fails_and_leaves_last = [&] {
        threads::run(
            2,
            [&](threads& team) {
                if (team.rank() == 1) {
                    team.fail(ddl::errc::broken, "an op threw");
                    while (!left) std::this_thread::yield();
                    throw std::domain_error("no such sum");
                }
                struct leaving {
                    std::atomic<bool>& now;
                    ~leaving() { now = true; }
                } const last{left};
                auto gone = std::move(team);  // and with it the place of this rank, before the other can leave
                gone.await(1, 1, here);
            },
            patient);
    };
    BOOST_CHECK_THROW(fails_and_leaves_last(), std::domain_error);
    BOOST_CHECK_EXCEPTION(threads::run(3, [](threads& team) { team.split(team.rank() == 2 ? -1 : 0, 0); }), ddl::error,
                          [](const ddl::error& e) { return e.code() == ddl::errc::invalid_argument; });
}

BOOST_AUTO_TEST_CASE(if_the_system_refuses_a_thread_those_that_run_hear_of_it) {
    if (under_a_sanitizer) return;  // which takes all addresses itself
    constexpr std::size_t room_for_some_stacks = std::size_t{1} << 28;
    const auto take_all_but_that = [=] {
        const rlimit most{room_for_some_stacks, room_for_some_stacks};
        EXPECT(::setrlimit(RLIMIT_AS, &most) == 0);
    };
    children first;
    first.start([=] {
        take_all_but_that();
        EXPECT(::mmap(nullptr, 2 * room_for_some_stacks, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    });
    if (first.finish()[0].how != outcome::returned) return;  // an emulator, which gives what it likes
    children alone;
    alone.start([=] {
        take_all_but_that();
        threads::run(
            100, [](threads& team) { team.exchange(0, here); }, patient);
    });
    const outcome result = alone.finish()[0];
    BOOST_TEST(result.is(ddl::errc::system), result);
    BOOST_TEST(result.mentions("the system refuses a thread for rank "), result);
}

BOOST_AUTO_TEST_CASE(a_peer_whose_communicator_has_gone_is_lost_but_what_it_did_before_counts) {
    threads::run(2, [](threads& team) {
        if (team.rank() == 1) {
            team.advance();
            return;
        }
        while (!team.lost(1)) std::this_thread::yield();
        team.await(1, 1, here);
        require_error(ddl::errc::peer_lost, "test, rank 0, round 3: rank 1 has ended", [&] { team.await(1, 2, here); });
    });
}

BOOST_AUTO_TEST_CASE(who_has_gone_is_found_while_another_is_late_and_who_has_done_its_part_is_not) {
    threads::run(
        4,
        [](threads& team) {
            if (team.rank() == 3) return;
            if (team.rank() == 0) {  // awaited first, and late until the others have found out
                while (!team.has_failed()) std::this_thread::yield();
                return;
            }
            require_error(ddl::errc::peer_lost, "rank 3 has ended", [&] { team.exchange(0, here); });
        },
        patient);
    std::atomic<bool> gone = false;
    threads::run(
        3,
        [&gone](threads& team) {
            team.begin(here);
            if (team.rank() == 0) {
                while (!gone.load() || !team.lost(2)) std::this_thread::yield();
                std::this_thread::sleep_for(std::chrono::milliseconds(50));  // rank 1 looks around
            }
            team.post();
            if (team.rank() == 2) {
                gone.store(true);
                return;
            }
            for (const int peer : {0, 1, 2}) team.await_notice(peer, here);
        },
        patient);
}

BOOST_AUTO_TEST_CASE(a_part_hears_the_cause_of_a_fault_of_the_whole_though_one_of_its_ranks_says_more) {
    std::barrier next{3};
    threads::run(3, [&next](threads& team) {
        threads part = team.split(0, team.rank());
        next.arrive_and_wait();
        if (team.rank() == 0) team.fail(ddl::errc::peer_lost, "the cause");
        next.arrive_and_wait();
        if (team.rank() == 1) {
            require_error(ddl::errc::peer_lost, "the cause", [&] { part.listen(here); });
            part.fail(ddl::errc::broken, "an exception ended the call half done");
        }
        next.arrive_and_wait();
        if (team.rank() == 2) require_error(ddl::errc::peer_lost, "the cause", [&] { part.listen(here); });
    });
}

/// Of a part that is split off, all are told by its first rank, which may give up meanwhile, and leave.
BOOST_AUTO_TEST_CASE(a_rank_that_gives_up_in_a_split_takes_nothing_along_that_others_still_look_at) {
    for (int turn = 0; turn < 40; ++turn)
        threads::run(
            6,
            [turn](threads& team) {
                if (team.rank() == 0) team.set_timeout(ddl::timeout{1e-4 * (turn % 20 + 1)});
                const ddl::error failure = error_of([&] {
                    for (int i = 0; i < 20; ++i) team.split(0, 0).exchange(0, here);
                });
                require(failure.code() == no_error || failure.code() == ddl::errc::timeout ||
                            failure.code() == ddl::errc::peer_lost,
                        failure.what());
            },
            patient);
}

BOOST_AUTO_TEST_CASE(a_wait_ends_at_its_limit_and_names_whom_it_was_for) {
    std::barrier over{2};
    threads::run(2, [&over](threads& team) {
        if (team.rank() == 1) {
            over.arrive_and_wait();
            return;
        }
        team.set_timeout(ddl::timeout{0.1});
        require(team.limit().seconds == 0.1, "the limit is another");
        const ddl::error failure = error_of([&] { team.await(1, 1, here); });
        require(failure.code() == ddl::errc::timeout, failure.what());
        require(std::strcmp(failure.what(),
                            "test, rank 0, round 3: rank 1 did not arrive within 0.1 s; see what holds it up, or set "
                            "a longer timeout") == 0,
                failure.what());
        over.arrive_and_wait();
    });
}

BOOST_AUTO_TEST_CASE(a_failure_is_told_once_and_remembered) {
    std::atomic<bool> told = false;  // who awaits a counter may hear of it there already
    threads::run(2, [&told](threads& team) {
        if (team.rank() == 0) {
            team.fail(ddl::errc::system, "the first words");
            team.fail(ddl::errc::timeout, "later ones");
            told.store(true);
        } else {
            while (!told.load()) std::this_thread::yield();
            require_error(ddl::errc::system, "a peer gave up [the first words]", [&] { team.begin(here); });
        }
        require_error(ddl::errc::broken, "the first words", [&] { team.begin(here); });
    });
}

BOOST_AUTO_TEST_CASE(who_waits_elsewhere_hears_of_a_failure) {
    std::barrier met{2};  // who is still in `exchange` may hear of it there
    threads::run(2, [&met](threads& team) {
        team.listen(here);
        team.exchange(0, here);
        met.arrive_and_wait();
        if (team.rank() == 1) team.fail(ddl::errc::system, "the device says no");
        else
            require_error(ddl::errc::system, "a peer gave up [the device says no]", [&] {
                for (ddl::patience waiting{patient}; !waiting.expired(); waiting.pause()) team.listen(here);
            });
    });
}

BOOST_AUTO_TEST_CASE(a_team_that_has_moved_is_the_same_team) {
    threads::run(2, [](threads& team) {
        team.exchange(1, here);
        threads moved{std::move(team)};
        const auto all = moved.exchange(static_cast<std::uint64_t>(moved.rank()), here);
        require(all == std::vector<std::uint64_t>{0, 1}, "it lost count");
    });
}
