// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/recording.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

#include "../collective/require.hpp"

namespace data = boost::unit_test::data;
using ddl::recording;
using direction = recording::direction;

static_assert(ddl::message_transport<recording> && ddl::marking_transport<recording>);
static_assert(!ddl::memory_transport<recording>);
static_assert(std::is_move_constructible_v<recording> && !std::is_copy_constructible_v<recording>);

namespace {
const ddl::call_site here{"test"};
const auto soon = ddl::timeout{std::chrono::milliseconds{200}};

void wait(recording& wire, recording::ticket& asked) {
    ddl::patience waiting{wire.limit()};
    while (!wire.test(asked))
        if (waiting.pause()) {
            wire.listen(here);
            if (waiting.expired())
                throw ddl::error(ddl::errc::timeout, here.operation, wire.rank(), -1, "nothing came");
        }
}

void send_now(recording& wire, int peer, const std::vector<int>& values, int tag = 0) {
    auto sent = wire.send(peer, values.data(), values.size() * sizeof(int), tag);
    wait(wire, sent);
}

std::vector<int> receive_now(recording& wire, int peer, std::size_t count, int tag = 0) {
    std::vector<int> values(count);
    auto came = wire.receive(peer, values.data(), count * sizeof(int), tag);
    wait(wire, came);
    return values;
}

/// All send to all with two tags, several messages a pair, each of another length; all must come, in order.
void talk_wildly(recording& wire, int messages) {
    const auto length = [](int from, int to, int tag, int index) {
        return static_cast<std::size_t>(1) + static_cast<std::size_t>((from * 7 + to * 3 + tag + index * 97) % 300);
    };
    struct under_way {
        std::vector<int> values;
        int first;  // what a received message must begin with, or -1
        recording::ticket ticket;
    };
    std::vector<under_way> all;
    all.reserve(static_cast<std::size_t>(4 * messages * wire.size()));
    const auto value = [](int from, int to, int tag, int index) {
        return ((from * 16 + to) * 16 + tag) * 1000 + index;
    };
    for (int index = 0; index < messages; ++index)
        for (int peer = 0; peer < wire.size(); ++peer)
            for (int tag = 0; tag < 2; ++tag) {
                auto& in = all.emplace_back(under_way{
                    std::vector<int>(length(peer, wire.rank(), tag, index)), value(peer, wire.rank(), tag, index), {}});
                in.ticket = wire.receive(peer, in.values.data(), in.values.size() * sizeof(int), tag);
                auto& out =
                    all.emplace_back(under_way{std::vector<int>(length(wire.rank(), peer, tag, index)), -1, {}});
                std::iota(out.values.begin(), out.values.end(), value(wire.rank(), peer, tag, index));
                out.ticket = wire.send(peer, out.values.data(), out.values.size() * sizeof(int), tag);
            }
    for (auto& one : all) {
        wait(wire, one.ticket);
        for (std::size_t i = 0; one.first >= 0 && i < one.values.size(); ++i)
            require(one.values[i] == one.first + static_cast<int>(i), "a message has the bytes of another");
        std::fill(one.values.begin(), one.values.end(), -7);  // ours again: a thread sanitizer sees who still reads it
    }
}

template <class Body>
ddl::error failure_of(int ranks, Body body, const recording::options& chosen) {
    return error_of([&] { recording::run(ranks, body, chosen); });
}
}  // namespace

BOOST_AUTO_TEST_CASE(every_rank_runs_once_and_knows_its_place) {
    std::array<int, 5> seen{};
    recording::run(5, [&](recording& wire) { seen[static_cast<std::size_t>(wire.rank())] += wire.size(); });
    BOOST_TEST(seen == (std::array<int, 5>{5, 5, 5, 5, 5}), boost::test_tools::per_element());
    BOOST_CHECK_THROW(recording::run(0, [](recording&) {}), ddl::error);
}

BOOST_AUTO_TEST_CASE(a_message_brings_its_bytes) {
    recording::run(2, [](recording& wire) {
        if (wire.rank() == 0) send_now(wire, 1, {1, 2, 3});
        if (wire.rank() == 1) require(receive_now(wire, 0, 3) == std::vector{1, 2, 3}, "other bytes came");
    });
}

BOOST_AUTO_TEST_CASE(a_rank_may_send_to_itself) {
    recording::run(1, [](recording& wire) {
        int in = 0;
        const int out = 42;
        auto sent = wire.send(0, &out, sizeof out, 3);
        auto came = wire.receive(0, &in, sizeof in, 3);
        wait(wire, came);
        wait(wire, sent);
        require(in == 42, "it said something else to itself");
    });
}

BOOST_DATA_TEST_CASE(order_is_kept_within_a_pair_and_a_tag, data::xrange(20), seed) {
    recording::run(2,
                   [](recording& wire) {
                       for (int i = 0; i < 100; ++i) {
                           if (wire.rank() == 0) send_now(wire, 1, {i}, i % 2);
                           if (wire.rank() == 1) require(receive_now(wire, 0, 1, i % 2).front() == i, "overtaken");
                       }
                   },
                   {.seed = static_cast<std::uint64_t>(seed), .delays = true});
}

BOOST_AUTO_TEST_CASE(different_tags_and_peers_overtake_each_other_when_delayed) {
    int overtaken = 0;
    for (unsigned seed = 0; seed < 50; ++seed)
        recording::run(2,
                       [&](recording& wire) {
                           const std::vector<int> one{1};
                           if (wire.rank() == 0) {
                               auto first = wire.send(1, one.data(), sizeof(int), 0);
                               auto second = wire.send(1, one.data(), sizeof(int), 1);
                               wait(wire, first);
                               wait(wire, second);
                               send_now(wire, 1, one, 2);
                               receive_now(wire, 1, 0, 3);
                           } else {
                               receive_now(wire, 0, 1, 2);
                               std::array<int, 2> got{};
                               auto first = wire.receive(0, got.data(), sizeof(int), 0);
                               auto second = wire.receive(0, &got[1], sizeof(int), 1);
                               if (!wire.test(first) && wire.test(second)) ++overtaken;
                               wait(wire, first);
                               wait(wire, second);
                               send_now(wire, 0, {}, 3);
                           }
                       },
                       {.seed = seed, .delays = true});
    BOOST_TEST(overtaken > 0);
}

BOOST_DATA_TEST_CASE(marks_are_heard_and_order_is_kept_whatever_they_are, data::xrange(20), seed) {
    recording::run(2,
                   [](recording& wire) {
                       constexpr std::uint32_t last = (1U << ddl::mark_bits) - 1;
                       const auto mark = [](int i) { return i % 3 == 2 ? last : static_cast<std::uint32_t>(i % 3); };
                       require(wire.marks(), "it bears none");
                       for (int i = 0; i < 60; ++i) {
                           int value = i;
                           if (wire.rank() == 0) {
                               auto sent = wire.send_marked(1, &value, sizeof value, mark(i));
                               wait(wire, sent);
                               send_now(wire, 1, {-i}, static_cast<int>(mark(i) % 3));
                           } else {
                               require(receive_now(wire, 0, 1, static_cast<int>(mark(i) % 3)).front() == -i,
                                       "a message with a tag is another");
                               auto came = wire.receive_marked(0, &value, sizeof value);
                               wait(wire, came);
                               require(value == i && wire.mark_of(came) == mark(i), "a marked message is another");
                           }
                       }
                   },
                   {.seed = static_cast<std::uint64_t>(seed), .delays = true, .marks = true});
}

BOOST_AUTO_TEST_CASE(zero_bytes_are_a_message) {
    recording::run(2, [](recording& wire) {
        if (wire.rank() == 0) {
            send_now(wire, 1, {});
            send_now(wire, 1, {7});
        } else {
            auto empty = wire.receive(0, nullptr, 0, 0);
            wait(wire, empty);
            require(receive_now(wire, 0, 1).front() == 7, "the empty message was not counted");
        }
    });
}

BOOST_AUTO_TEST_CASE(a_receive_takes_a_shorter_message_and_leaves_the_rest) {
    recording::run(2, [](recording& wire) {
        if (wire.rank() == 0) return send_now(wire, 1, {7});
        std::array<int, 3> room{-1, -1, -1};
        auto came = wire.receive(0, room.data(), sizeof room, 0);
        wait(wire, came);
        require(room == std::array<int, 3>{7, -1, -1}, "it was written beyond the message");
    });
}

BOOST_AUTO_TEST_CASE(a_message_longer_than_its_receive_is_an_error_of_the_receiver) {
    const auto failure = failure_of(2,
                                    [](recording& wire) {
                                        if (wire.rank() == 0) send_now(wire, 1, {1, 2});
                                        if (wire.rank() == 1) receive_now(wire, 0, 1, 0);
                                    },
                                    {});
    BOOST_TEST(failure.what() ==
               "receive, rank 1: rank 0 sends 8 bytes with tag 0, this receive takes 4; agree on the count");
    BOOST_TEST((failure.code() == ddl::errc::system));
}

BOOST_AUTO_TEST_CASE(a_ticket_that_was_true_stays_true) {
    recording::run(2, [](recording& wire) {
        const int one = 1;
        int got = 0;
        auto sent = wire.send(1 - wire.rank(), &one, sizeof one, 0);
        auto came = wire.receive(1 - wire.rank(), &got, sizeof got, 0);
        wait(wire, sent);
        wait(wire, came);
        for (int i = 0; i < 3; ++i) require(wire.test(sent) && wire.test(came), "it is under way again");
    });
}

BOOST_AUTO_TEST_CASE(a_short_send_ends_without_its_receive) {
    recording::run(2,
                   [](recording& wire) {
                       send_now(wire, 1 - wire.rank(), std::vector<int>(16, wire.rank()));
                       require(receive_now(wire, 1 - wire.rank(), 16).back() == 1 - wire.rank(),
                               "what was put by is another message");
                   },
                   {.eager_limit = 64});
}

BOOST_AUTO_TEST_CASE(a_schedule_that_needs_buffers_hangs_when_its_messages_are_long) {
    const auto failure = failure_of(2,
                                    [](recording& wire) {
                                        send_now(wire, 1 - wire.rank(), std::vector<int>(17));
                                        receive_now(wire, 1 - wire.rank(), 17);
                                    },
                                    {.eager_limit = 64, .limit = soon});
    BOOST_TEST((failure.code() == ddl::errc::timeout));
}

BOOST_AUTO_TEST_CASE(a_long_send_ends_when_its_receive_has_taken_it) {
    recording::run(2, [](recording& wire) {
        std::vector<int> values(1 << 20, wire.rank()), room(values.size());
        auto sent = wire.send(1 - wire.rank(), values.data(), values.size() * sizeof(int), 0);
        auto came = wire.receive(1 - wire.rank(), room.data(), room.size() * sizeof(int), 0);
        wait(wire, sent);
        std::fill(values.begin(), values.end(), -1);
        wait(wire, came);
        require(std::count(room.begin(), room.end(), 1 - wire.rank()) == 1 << 20,
                "it was taken after its send had ended");
    });
}

BOOST_AUTO_TEST_CASE(bytes_that_change_under_way_are_an_error_that_names_the_sender) {
    for (const std::size_t eager_limit : {std::size_t{0}, std::size_t{64}}) {
        const auto failure = failure_of(1,
                                        [](recording& wire) {
                                            int value = 1;
                                            int got = 0;
                                            auto sent = wire.send(0, &value, sizeof value, 5);
                                            value = 2;  // too early
                                            auto came = wire.receive(0, &got, sizeof got, 5);
                                            wait(wire, sent);
                                            wait(wire, came);
                                        },
                                        {.eager_limit = eager_limit});
        BOOST_TEST(failure.what() ==
                   "send, rank 0: 4 bytes with tag 5 were changed under way; leave them until the ticket tests true");
    }
}

BOOST_DATA_TEST_CASE(many_messages_wildly_interleaved_all_arrive, data::xrange(1, 6) * data::make({0, 400, 4096}),
                     ranks, eager_limit) {
    for (unsigned seed = 0; seed < 3; ++seed)
        recording::run(ranks, [](recording& wire) { talk_wildly(wire, 8); },
                       {.seed = seed, .delays = true, .eager_limit = static_cast<std::size_t>(eager_limit)});
    recording::run(ranks, [](recording& wire) { talk_wildly(wire, 8); },
                   {.eager_limit = static_cast<std::size_t>(eager_limit)});
}

BOOST_AUTO_TEST_CASE(the_log_has_all_sends_and_receives_in_order) {
    std::vector<recording::event> log;
    recording::run(2, [&](recording& wire) {
        receive_now(wire, wire.rank(), 0, (send_now(wire, wire.rank(), {}, 9), 9));
        wire.clear_log();
        if (wire.rank() == 1) {
            receive_now(wire, 0, 3, 2);
            return;
        }
        send_now(wire, 1, {1, 2}, 2);
        log = wire.log();
    });
    BOOST_REQUIRE(log.size() == 1);
    BOOST_TEST((log[0] == recording::event{direction::send, 1, 2, 8}));
}

BOOST_AUTO_TEST_CASE(a_cancelled_receive_leaves_its_message_to_the_next) {
    recording::run(2, [](recording& wire) {
        if (wire.rank() == 0) return send_now(wire, 1, {7});
        auto gone = std::make_unique<int>();
        auto given_up = wire.receive(0, gone.get(), sizeof(int), 0);
        wire.cancel(given_up);
        gone.reset();
        require(wire.test(given_up), "it is still under way");
        require(receive_now(wire, 0, 1).front() == 7, "the message went to where nobody waits");
    });
}

BOOST_AUTO_TEST_CASE(a_cancelled_send_never_comes) {
    std::atomic<bool> cancelled{false};  // before that it may come
    recording::run(2,
                   [&cancelled](recording& wire) {
                       if (wire.rank() == 0) {
                           auto gone = std::make_unique<int>(1);
                           auto given_up = wire.send(1, gone.get(), sizeof(int), 0);
                           wire.cancel(given_up);
                           gone.reset();
                           cancelled = true;
                           cancelled.notify_one();
                           send_now(wire, 1, {2});
                       } else {
                           cancelled.wait(false);
                           require(receive_now(wire, 0, 1).front() == 2, "a message came that was given up");
                       }
                   },
                   {.eager_limit = 0});
}

BOOST_AUTO_TEST_CASE(no_such_rank_is_an_error_on_this_rank) {
    recording::run(2, [](recording& wire) {
        int value = 0;
        for (const int peer : {-1, 2}) {
            bool thrown = false;
            try {
                wire.send(peer, &value, sizeof value, 0);
            } catch (const ddl::error& failure) { thrown = failure.code() == ddl::errc::invalid_argument; }
            require(thrown, "a message to nobody went out");
        }
    });
}

BOOST_AUTO_TEST_CASE(a_fault_is_heard_by_all_and_leaves_the_communicator_broken) {
    std::array<std::string, 4> heard;
    std::array<std::string, 4> later;
    recording::run(4, [&](recording& wire) {
        const auto mine = static_cast<std::size_t>(wire.rank());
        if (wire.rank() == 2) wire.fail(ddl::errc::mismatch, "first words");
        if (wire.rank() == 2) wire.fail(ddl::errc::system, "second words");
        try {
            receive_now(wire, (wire.rank() + 1) % 4, 1);
        } catch (const ddl::error& failure) {
            heard[mine] = failure.what();
            const bool knows = wire.rank() == 2;  // for it that failed, the fault is an earlier one
            require(failure.code() == (knows ? ddl::errc::broken : ddl::errc::mismatch), "it is another failure");
        }
        try {
            wire.begin({"next"});
        } catch (const ddl::error& failure) {
            later[mine] = failure.what();
            require(failure.code() == ddl::errc::broken, "it is not broken");
        }
    });
    for (std::size_t rank = 0; rank < 4; ++rank) {
        BOOST_TEST(heard[rank] == "test, rank " + std::to_string(rank) +
                                      (rank == 2 ? ": the communicator is broken since an earlier call [first words]"
                                                 : ": a peer gave up [first words]"));
        BOOST_TEST(later[rank] == "next, rank " + std::to_string(rank) +
                                      ": the communicator is broken since an earlier call [first words]");
    }
}

BOOST_AUTO_TEST_CASE(an_exception_of_one_rank_wakes_the_others_and_is_thrown_by_run) {
    BOOST_CHECK_EXCEPTION(recording::run(3,
                                         [](recording& wire) {
                                             if (wire.rank() == 1) throw std::runtime_error("mine");
                                             receive_now(wire, 1, 1);
                                         }),
                          std::runtime_error,
                          [](const std::runtime_error& thrown) { return thrown.what() == std::string("mine"); });
}

BOOST_AUTO_TEST_CASE(messages_of_a_killed_rank_never_come_and_its_peers_meet_their_deadline) {
    std::array<ddl::errc, 2> met{};
    recording::run(3, [&](recording& wire) {
        if (wire.rank() == 2) {
            wire.die(1);
            send_now(wire, 0, {1});
            send_now(wire, 0, {2});
            wire.fail(ddl::errc::system, "the dead do not speak");
            return;
        }
        if (wire.rank() == 0) require(receive_now(wire, 2, 1).front() == 1, "what it sent alive must come");
        wire.set_timeout(soon);
        try {
            receive_now(wire, 2, 1);
        } catch (const ddl::error& failure) { met[static_cast<std::size_t>(wire.rank())] = failure.code(); }
    });
    for (const ddl::errc code : met) BOOST_TEST((code == ddl::errc::timeout));
}

BOOST_AUTO_TEST_CASE(scratch_stays_until_it_grows) {
    recording::run(1, [](recording& wire) {
        std::byte* const first = wire.scratch(1000);
        require(wire.scratch(10) == first, "it moved without need");
        require(wire.scratch(10, ddl::scratch_for::fusion) != first, "two uses share their bytes");
        std::fill_n(wire.scratch(100'000), 100'000, std::byte{1});
    });
}

BOOST_AUTO_TEST_CASE(queued_calls_are_done_before_the_next_begins) {
    recording::run(2, [](recording& wire) {
        std::vector<int> got;
        wire.queue().push([&] {
            auto sent = wire.send(1 - wire.rank(), "abc", 4, 0);
            got = receive_now(wire, 1 - wire.rank(), 1);
            wait(wire, sent);
        });
        wire.begin(here);
        require(got.size() == 1, "the queue was not drained");
    });
}

BOOST_DATA_TEST_CASE(split_groups_by_color_and_orders_by_key, data::xrange(1, 7), ranks) {
    recording::run(ranks,
                   [](recording& wire) {
                       const int color = wire.rank() % 2;
                       recording forwards = wire.split(color, 0);
                       recording backwards = wire.split(color, -wire.rank());
                       recording everybody = wire.split(0, wire.rank() == 0 ? 1 : -1);
                       const int members = (wire.size() + 1 - color) / 2;
                       require(forwards.size() == members && backwards.size() == members, "a group has other members");
                       require(forwards.rank() == wire.rank() / 2, "equal keys keep the order of ranks");
                       require(backwards.rank() == members - 1 - wire.rank() / 2, "negative keys come in their order");
                       require(everybody.rank() == (wire.rank() + wire.size() - 1) % wire.size(),
                               "the highest key is last");
                       for (recording* group : {&forwards, &backwards, &everybody}) talk_wildly(*group, 3);
                       recording moved{std::move(forwards)};
                       talk_wildly(moved, 2);
                       require(moved.split(0, 0).size() == members, "a group cannot be split again");
                   },
                   {.delays = true});
}

BOOST_AUTO_TEST_CASE(split_with_a_negative_color_is_an_error_and_harms_nobody) {
    recording::run(2, [](recording& wire) {
        try {
            wire.split(-3, 0);
            require(false, "it was taken");
        } catch (const ddl::error& failure) {
            require(failure.what() == "split, rank " + std::to_string(wire.rank()) + ": color is -3; pass 0 or more",
                    failure.what());
        }
        require(wire.split(0, 0).size() == 2, "the communicator was as good as before");
    });
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_come_to_split_is_named_at_the_deadline) {
    const auto failure = failure_of(3,
                                    [](recording& wire) {
                                        if (wire.rank() != 1) wire.split(0, 0);
                                    },
                                    {.limit = ddl::timeout{2}});
    BOOST_TEST((failure.code() == ddl::errc::timeout));
    BOOST_TEST(std::string(failure.what()).find("rank 1 did not arrive within 2 s") != std::string::npos,
               failure.what());
}

BOOST_AUTO_TEST_CASE(a_body_may_leave_with_an_exception_while_its_nonblocking_call_is_under_way) {
    std::array<std::atomic<bool>, 2> begun{};  // relaxed: they put nothing in order
    const auto body = [&](recording& wire) {
        std::atomic<bool>& started = begun[static_cast<std::size_t>(wire.rank())];
        wire.queue().push([&wire, &started] {
            const std::byte value{};
            for (int i = 0; i < 200; ++i) {
                auto sent = wire.send(1 - wire.rank(), &value, 1, 1);
                started.store(true, std::memory_order_relaxed);
                wait(wire, sent);
            }
        });
        while (!started.load(std::memory_order_relaxed)) std::this_thread::yield();
        throw std::domain_error("the body's own");
    };
    BOOST_CHECK_THROW(recording::run(2, body), std::domain_error);
}
