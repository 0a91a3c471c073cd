// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4
// mpich-ranks: 1 2 3 4
// lock: memory
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>
#include <ddl/transport/mpi.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <sched.h>
#include <span>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "../collective/require.hpp"
#include "free_memory.hpp"

namespace data = boost::unit_test::data;

static_assert(ddl::message_transport<ddl::mpi> && ddl::marking_transport<ddl::mpi>);
static_assert(!ddl::memory_transport<ddl::mpi>);
static_assert(std::is_move_constructible_v<ddl::mpi> && !std::is_copy_constructible_v<ddl::mpi>);

namespace {
const ddl::call_site here{"test"};
const ddl::timeout patient{120.0};
const ddl::timeout soon{std::chrono::milliseconds{300}};

/// MPI is started by the first `ddl::mpi` of the process, and finalised when the process exits.
struct mpi_for_all_cases {
    static bool is_initialised() {
        int started = 0;
        MPI_Initialized(&started);
        return started != 0;
    }
    mpi_for_all_cases() {
        const bool before = is_initialised();
        const ddl::mpi first;
        was_started_by_ddl = !before && is_initialised();
    }
    static inline bool was_started_by_ddl = false;
};
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

void wait(ddl::mpi& wire, ddl::mpi::ticket& asked) {
    ddl::patience waiting{wire.limit()};
    while (!wire.test(asked))
        if (waiting.pause()) {
            wire.listen(here);
            if (waiting.expired())
                throw ddl::error(ddl::errc::timeout, here.operation, wire.rank(), -1, "nothing came");
        }
}

struct neighbours {
    explicit neighbours(const ddl::mpi& wire)
        : left{(wire.rank() + wire.size() - 1) % wire.size()}, right{(wire.rank() + 1) % wire.size()} {}
    int left;
    int right;
};

/// Passes `values` to the right and returns what comes from the left, in room for `count`.
std::vector<int> passed_on(ddl::mpi& wire, const std::vector<int>& values, std::size_t count, int tag = 0) {
    const neighbours next{wire};
    std::vector<int> room(count, -1);
    auto came = wire.receive(next.left, room.data(), count * sizeof(int), tag);
    auto sent = wire.send(next.right, values.data(), values.size() * sizeof(int), tag);
    wait(wire, came);
    wait(wire, sent);
    return room;
}

bool says(const ddl::error& failure, const std::string& words) {
    return std::string(failure.what()).find(words) != std::string::npos;
}
}  // namespace

BOOST_AUTO_TEST_CASE(without_a_communicator_it_is_the_world_and_starts_mpi_if_nobody_did) {
    BOOST_TEST(mpi_for_all_cases::was_started_by_ddl);
    const ddl::mpi wire;
    int result = MPI_UNEQUAL;
    MPI_Comm_compare(wire.communicator(), MPI_COMM_WORLD, &result);
    BOOST_TEST(result == MPI_CONGRUENT, "a duplicate: the same ranks, and messages of its own");
}

BOOST_AUTO_TEST_CASE(rank_and_size_are_those_of_the_communicator) {
    int rank = -1;
    int size = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const ddl::mpi wire{MPI_COMM_WORLD};
    BOOST_TEST(wire.rank() == rank);
    BOOST_TEST(wire.size() == size);
    const ddl::mpi alone{MPI_COMM_SELF};
    BOOST_TEST(alone.size() == 1);
    BOOST_TEST((error_of([] { ddl::mpi{MPI_COMM_NULL}; }).code() == ddl::errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(the_timeout_is_given_or_that_of_the_environment) {
    BOOST_TEST((ddl::mpi{MPI_COMM_SELF, ddl::timeout{3.0}}.limit().seconds == 3));
    ::setenv("DDL_TIMEOUT", "4.5", 1);
    BOOST_TEST(ddl::mpi{MPI_COMM_SELF}.limit().seconds == 4.5);
    ::setenv("DDL_TIMEOUT", "soon", 1);
    BOOST_TEST(
        says(error_of([] { ddl::mpi{MPI_COMM_SELF}; }), "timeout: DDL_TIMEOUT is \"soon\"; it takes seconds, above 0"));
    ::unsetenv("DDL_TIMEOUT");
    BOOST_TEST(ddl::mpi{MPI_COMM_SELF}.limit().seconds == 600);
}

BOOST_AUTO_TEST_CASE(order_is_kept_within_a_pair_and_a_tag) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    const neighbours next{wire};
    constexpr int messages = 200;
    std::vector<int> out(messages);
    std::vector<int> in(messages, -1);
    std::iota(out.begin(), out.end(), 0);
    std::vector<ddl::mpi::ticket> all;
    for (std::size_t i = 0; i < messages; ++i) {
        const int tag = static_cast<int>(i % 2);
        all.push_back(wire.send(next.right, &out[i], sizeof(int), tag));
        all.push_back(wire.receive(next.left, &in[i], sizeof(int), tag));
    }
    for (auto& one : all) wait(wire, one);
    BOOST_TEST(in == out, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(marks_are_heard_and_order_is_kept_whatever_they_are) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    BOOST_REQUIRE(wire.marks());  // as by the MPIs that this is tested with
    BOOST_TEST(wire.split(wire.rank() % 2, 0).marks());
    const neighbours next{wire};
    constexpr std::uint32_t last = (1U << ddl::mark_bits) - 1;
    const auto mark = [](std::size_t i) { return i % 3 == 2 ? last : static_cast<std::uint32_t>(i % 3); };
    constexpr int messages = 200;
    std::vector<int> out(messages);
    std::vector<int> in(messages, -1);
    std::vector<int> tagged(messages, -1);
    std::iota(out.begin(), out.end(), 0);
    std::vector<ddl::mpi::ticket> all;
    std::vector<ddl::mpi::ticket> marked;
    for (std::size_t i = 0; i < messages; ++i) {
        const int tag = static_cast<int>(i % 2);
        all.push_back(wire.send_marked(next.right, &out[i], sizeof(int), mark(i)));
        all.push_back(wire.send(next.right, &out[messages - 1 - i], sizeof(int), tag));
        all.push_back(wire.receive(next.left, &tagged[i], sizeof(int), tag));
        marked.push_back(wire.receive_marked(next.left, &in[i], sizeof(int)));
    }
    for (auto& one : all) wait(wire, one);
    for (std::size_t i = 0; i < messages; ++i) {
        wait(wire, marked[i]);
        BOOST_TEST(wire.mark_of(marked[i]) == mark(i));
    }
    BOOST_TEST(in == out, boost::test_tools::per_element());
    BOOST_TEST(std::vector<int>(tagged.rbegin(), tagged.rend()) == out, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(zero_bytes_are_a_message) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    BOOST_TEST(passed_on(wire, {}, 0).empty());
    passed_on(wire, {}, 1, 3);  // takes the empty message, not the next
    BOOST_TEST(passed_on(wire, {7}, 1, 3) == std::vector{7});
}

BOOST_AUTO_TEST_CASE(a_receive_takes_a_shorter_message_and_leaves_the_rest) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    BOOST_TEST(passed_on(wire, {7}, 3) == (std::vector{7, -1, -1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_message_longer_than_its_receive_is_an_error_with_the_words_of_mpi) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    if (wire.size() == 1) return;  // some MPI cuts what a rank sends to itself, and does not say so
    wire.begin(here);
    int room = 0;
    const std::vector<int> values(2);
    const neighbours next{wire};
    auto came = wire.receive(next.left, &room, sizeof room, 0);
    const auto failure = error_of([&] {
        wire.send(next.right, values.data(), 2 * sizeof(int), 0);
        wait(wire, came);
    });
    BOOST_TEST((failure.code() == ddl::errc::system));
    BOOST_TEST(says(failure, "test, rank " + std::to_string(wire.rank()) + ": MPI_"), failure.what());
    BOOST_TEST(says(failure, "truncated"), failure.what());
    BOOST_TEST(!says(failure, "\n"), "on one line, of however many MPI makes its words");
    MPI_Barrier(MPI_COMM_WORLD);
}

BOOST_AUTO_TEST_CASE(no_such_rank_is_an_error_with_the_words_of_mpi) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    const auto failure = error_of([&] { wire.send(wire.size(), nullptr, 0, 0); });
    BOOST_TEST((failure.code() == ddl::errc::system));
    BOOST_TEST(says(failure, "MPI_Isend refused: "), failure.what());
}

BOOST_DATA_TEST_CASE(messages_of_all_lengths_arrive_whole, data::make({1, 1000, 1024, 1025, 65'536, 5'000'011}),
                     count) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    std::vector<int> out(static_cast<std::size_t>(count));
    std::vector<int> expected(out.size());
    std::iota(out.begin(), out.end(), wire.rank());
    std::iota(expected.begin(), expected.end(), neighbours{wire}.left);
    BOOST_TEST((passed_on(wire, out, out.size()) == expected));
}

BOOST_AUTO_TEST_CASE(many_messages_wildly_interleaved_all_arrive) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    struct under_way {
        std::vector<int> values;
        int expected;  // or -1 for a send
        ddl::mpi::ticket ticket;
    };
    std::vector<under_way> all;
    const auto value = [](int from, int to, int tag, int index) { return ((from * 8 + to) * 8 + tag) * 100 + index; };
    for (int index = 0; index < 20; ++index)
        for (int peer = 0; peer < wire.size(); ++peer)
            for (int tag = 0; tag < 3; ++tag) {
                const auto count = static_cast<std::size_t>(1 + index * index * index);  // eager and not
                all.push_back({std::vector<int>(count, -1), value(peer, wire.rank(), tag, index), {}});
                all.push_back({std::vector<int>(count, value(wire.rank(), peer, tag, index)), -1, {}});
            }
    for (auto& one : all) {
        const auto place = static_cast<int>(&one - all.data()) / 2;
        const int tag = place % 3;
        const int peer = place / 3 % wire.size();
        one.ticket = one.expected < 0 ? wire.send(peer, one.values.data(), one.values.size() * sizeof(int), tag)
                                      : wire.receive(peer, one.values.data(), one.values.size() * sizeof(int), tag);
    }
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937{static_cast<unsigned>(wire.rank())});
    long wrong = 0;
    for (const std::size_t i : order) {
        wait(wire, all[i].ticket);
        for (const int got : all[i].values) wrong += all[i].expected >= 0 && got != all[i].expected;
    }
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_ticket_that_was_true_stays_true) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    auto came = wire.receive(neighbours{wire}.left, nullptr, 0, 0);
    auto sent = wire.send(neighbours{wire}.right, nullptr, 0, 0);
    wait(wire, came);
    wait(wire, sent);
    for (int i = 0; i < 3; ++i) BOOST_TEST((wire.test(came) && wire.test(sent)));
    wire.cancel(came);
    BOOST_TEST(wire.test(came));
}

BOOST_AUTO_TEST_CASE(a_cancelled_receive_leaves_its_message_to_the_next) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    auto gone = std::make_unique<int>();
    auto given_up = wire.receive(neighbours{wire}.left, gone.get(), sizeof(int), 0);
    wire.cancel(given_up);
    gone.reset();
    BOOST_TEST(wire.test(given_up));
    MPI_Barrier(MPI_COMM_WORLD);
    BOOST_TEST(passed_on(wire, {wire.rank()}, 1) == std::vector{neighbours{wire}.left});
}

BOOST_AUTO_TEST_CASE(two_transports_on_one_communicator_do_not_mix_their_messages) {
    ddl::mpi one{MPI_COMM_WORLD, patient};
    ddl::mpi other{MPI_COMM_WORLD, patient};
    const int out = 1;
    auto sent = one.send(neighbours{one}.right, &out, sizeof out, 0);
    BOOST_TEST(passed_on(other, {2}, 1) == std::vector{2});
    int in = 0;
    auto came = one.receive(neighbours{one}.left, &in, sizeof in, 0);
    wait(one, came);
    wait(one, sent);
    BOOST_TEST(in == 1);
}

BOOST_AUTO_TEST_CASE(scratch_stays_until_it_grows_and_each_use_has_its_own) {
    ddl::mpi wire{MPI_COMM_SELF};
    std::byte* const first = wire.scratch(1000);
    BOOST_TEST(wire.scratch(10) == first);
    BOOST_TEST(wire.scratch(10, ddl::scratch_for::levels) != first);
    std::fill_n(wire.scratch(100'000), 100'000, std::byte{1});
}

BOOST_AUTO_TEST_CASE(queued_calls_are_done_before_the_next_begins) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    std::vector<int> got;
    const auto done = wire.queue().push([&] { got = passed_on(wire, {5}, 1); });
    wire.begin(here);
    BOOST_TEST(done.test());
    BOOST_TEST(got == std::vector{5});
}

BOOST_AUTO_TEST_CASE(split_groups_by_color_and_orders_by_key) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    const int color = wire.rank() % 2;
    const int members = (wire.size() + 1 - color) / 2;
    ddl::mpi forwards = wire.split(color, 0);
    ddl::mpi backwards = wire.split(color, -wire.rank());
    BOOST_TEST(forwards.size() == members);
    BOOST_TEST(forwards.rank() == wire.rank() / 2, "equal keys keep the order of ranks");
    BOOST_TEST(backwards.rank() == members - 1 - wire.rank() / 2, "negative keys come in their order");
    BOOST_TEST(backwards.limit().seconds == patient.seconds);
    BOOST_TEST(passed_on(forwards, {wire.rank()}, 1) == std::vector{neighbours{forwards}.left * 2 + color});
    BOOST_TEST(passed_on(backwards, {backwards.rank()}, 1) == std::vector{neighbours{backwards}.left});
}

BOOST_AUTO_TEST_CASE(a_group_can_be_split_again_and_outlives_what_it_came_from) {
    auto wire = std::make_unique<ddl::mpi>(MPI_COMM_WORLD, patient);
    ddl::mpi everybody = wire->split(0, wire->rank() == 0 ? 1 : -1);
    wire.reset();
    ddl::mpi moved{std::move(everybody)};
    ddl::mpi again = moved.split(3, -moved.rank());
    BOOST_TEST(again.rank() == moved.size() - 1 - moved.rank());
    BOOST_TEST(passed_on(again, {again.rank()}, 1) == std::vector{neighbours{again}.left});
}

BOOST_AUTO_TEST_CASE(split_with_a_negative_color_is_an_error_and_harms_nobody) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    const auto failure = error_of([&] { wire.split(-3, 0); });
    BOOST_TEST((failure.code() == ddl::errc::invalid_argument));
    BOOST_TEST(failure.what() == "split, rank " + std::to_string(wire.rank()) + ": color is -3; pass 0 or more");
    BOOST_TEST(wire.split(0, 0).size() == wire.size());
}

BOOST_AUTO_TEST_CASE(a_fault_is_heard_by_all_and_leaves_the_communicator_broken) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    const std::string rank = std::to_string(wire.rank());
    wire.begin(here);
    MPI_Barrier(MPI_COMM_WORLD);  // so that nobody hears it before it waits
    if (wire.rank() == wire.size() - 1) {
        wire.fail(ddl::errc::mismatch, "first words");
        wire.fail(ddl::errc::system, "second words");
    }
    int room = 0;
    auto never = wire.receive(neighbours{wire}.left, &room, sizeof room, 5);
    const auto heard = error_of([&] { wait(wire, never); });
    wire.cancel(never);
    const bool knows = wire.rank() == wire.size() - 1;  // for it that failed, the fault is an earlier one
    BOOST_TEST((heard.code() == (knows ? ddl::errc::broken : ddl::errc::mismatch)));
    BOOST_TEST(heard.what() == "test, rank " + rank +
                                   (knows ? ": the communicator is broken since an earlier call [first words]"
                                          : ": a peer gave up [first words]"));
    const auto later = error_of([&] { wire.begin({"next"}); });
    BOOST_TEST((later.code() == ddl::errc::broken));
    BOOST_TEST(later.what() ==
               "next, rank " + rank + ": the communicator is broken since an earlier call [first words]");
}

BOOST_AUTO_TEST_CASE(a_fault_that_came_between_two_calls_is_met_by_the_next) {
    const auto meet = [](auto call) {
        ddl::mpi wire{MPI_COMM_WORLD, patient};
        if (wire.rank() == 0) wire.fail(ddl::errc::timeout, "some words");
        MPI_Barrier(MPI_COMM_WORLD);
        ddl::error failure = error_of([] {});
        // far fewer than MPI takes before it holds up who sends
        for (int calls = 0; failure.code() == ddl::errc{} && calls < 30; ++calls)
            failure = error_of([&] { call(wire); });
        BOOST_TEST((failure.code() == (wire.rank() == 0 ? ddl::errc::broken : ddl::errc::timeout)));
        BOOST_TEST(says(failure, "[some words]"), failure.what());
        BOOST_TEST((error_of([&] { wire.begin(here); }).code() == ddl::errc::broken));
    };
    int word = 0;
    meet([&](ddl::mpi& wire) { ddl::broadcast(wire, std::span{&word, 1}, wire.size() - 1); });
    // what is not compared may end without a wait where it only sends
    meet([&](ddl::mpi& wire) {
        ddl::broadcast<ddl::tuned, ddl::unchecked>(wire, std::span{&word, 1}, wire.size() - 1);
    });
}

BOOST_AUTO_TEST_CASE(a_fault_of_one_communicator_leaves_the_others_whole) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    {
        ddl::mpi broken{MPI_COMM_WORLD, patient};
        broken.fail(ddl::errc::system, "all of us");
        BOOST_TEST((error_of([&] { broken.split(0, 0); }).code() == ddl::errc::broken));
    }
    BOOST_TEST(passed_on(wire, {4}, 1) == std::vector{4});
}

BOOST_AUTO_TEST_CASE(a_root_that_comes_late_folds_nothing_that_may_have_changed) {
    ddl::mpi wire{MPI_COMM_WORLD, soon};
    std::vector<float> data(10'000, 1.0F), sums(data.size());
    const auto reduce = [&] { return error_of([&] { ddl::reduce(wire, data, sums, ddl::sum{}, 0); }); };
    MPI_Barrier(MPI_COMM_WORLD);
    if (wire.rank() != 0) {
        BOOST_TEST((reduce().code() == ddl::errc::timeout));
        std::ranges::fill(data, 2.0F);  // it is the caller's again
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (wire.size() > 1 && wire.rank() == 0) BOOST_TEST((reduce().code() == ddl::errc::timeout));
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_come_to_split_is_named_at_the_deadline) {
    ddl::mpi wire{MPI_COMM_WORLD, soon};
    const int late = wire.size() - 1;
    wire.begin(here);
    MPI_Barrier(MPI_COMM_WORLD);
    if (wire.size() > 1 && wire.rank() != late) {
        const auto failure = error_of([&] { wire.split(0, 0); });
        BOOST_TEST((failure.code() == ddl::errc::timeout));
        BOOST_TEST(says(failure, "did not arrive within 0.3 s"), failure.what());
        if (wire.size() == 2) BOOST_TEST(says(failure, "rank 1 did not arrive"), failure.what());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (wire.size() > 1 && wire.rank() == late) {
        const auto failure = error_of([&] { wire.split(0, 0); });
        BOOST_TEST((failure.code() == ddl::errc::timeout), "it comes too late, and learns that the others gave up");
    }
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_come_to_make_one_is_missed_at_the_deadline) {
    const ddl::mpi wire{MPI_COMM_WORLD, patient};
    MPI_Comm ranks = MPI_COMM_NULL;  // of no more use afterwards
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks);
    const bool late = wire.size() > 1 && wire.rank() == wire.size() - 1;
    if (wire.size() > 1 && !late) {
        const auto failure = error_of([&] { ddl::mpi{ranks, soon}; });
        BOOST_TEST((failure.code() == ddl::errc::timeout));
        const std::string words = "mpi, rank " + std::to_string(wire.rank()) + ": not all " +
                                  std::to_string(wire.size()) + " ranks have arrived within 0.3 s; make it on every";
        BOOST_TEST(says(failure, words), failure.what());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (late) {
        const auto failure = error_of([&] { ddl::mpi{ranks, soon}; });
        BOOST_TEST((failure.code() == ddl::errc::timeout), "it comes too late: nobody makes one with it any more");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const ddl::mpi another{MPI_COMM_WORLD, patient};
    BOOST_TEST(another.size() == wire.size(), "of other communicators more can be made");
}

namespace {
/// Rank 0's answer, so that all ranks do the same. Two ranks are enough, and more would take their time.
boost::test_tools::assertion_result memory_for_long_messages(boost::unit_test::test_unit_id) {
    int enough = free_memory() >= 12.0 * (1U << 30);
    int size = 0;
    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    boost::test_tools::assertion_result answer{enough != 0 && size == 2};
    answer.message() << (size == 2 ? "less than 12 GiB of memory are free" : "it takes two ranks");
    return answer;
}
}  // namespace

BOOST_AUTO_TEST_CASE(more_bytes_than_an_int_can_count_are_one_message,
                     *boost::unit_test::precondition(memory_for_long_messages)) {
    ddl::mpi wire{MPI_COMM_WORLD, ddl::timeout{120.0}};
    constexpr std::size_t count = (std::size_t{1} << 29) + 300'001;  // of 4 bytes: no multiple of a block
    const auto value = [](std::size_t i) { return static_cast<unsigned>(i * 2'654'435'761U); };
    std::vector<unsigned> values(count);
    if (wire.rank() == 0) {
        for (std::size_t i = 0; i < count; ++i) values[i] = value(i);
        auto sent = wire.send(1, values.data(), count * sizeof(unsigned), 0);
        wait(wire, sent);
        auto shorter = wire.send(1, values.data(), 12, 0);
        wait(wire, shorter);
        auto last = wire.send(1, values.data(), 8, 0);
        wait(wire, last);
    } else {
        auto came = wire.receive(0, values.data(), count * sizeof(unsigned), 0);
        wait(wire, came);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) wrong += values[i] != value(i);
        BOOST_TEST(wrong == 0U);
        std::fill(values.begin(), values.begin() + 10, 9U);
        auto shorter = wire.receive(0, values.data(), count * sizeof(unsigned), 0);  // with room for far more
        wait(wire, shorter);
        BOOST_TEST((values[2] == value(2) && values[3] == 9));
        auto last = wire.receive(0, values.data() + 10, 8, 0);
        wait(wire, last);
        BOOST_TEST(values[11] == value(1));
    }
}

BOOST_AUTO_TEST_CASE(ranks_find_alike_how_messages_are_cut) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    ddl::mpi moved{std::move(wire)};
    int sum = 0;
    const int alone = moved.uncrowded() ? 1 : 0;
    MPI_Allreduce(&alone, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    BOOST_TEST(sum == alone * moved.size());
    BOOST_TEST(moved.pieces_pay() == ddl::kernel::readers_hold_up_writers());
    // ranks that share cores go by that, and perhaps by more of the processor; so do those of a library that passes all messages whole
    const ddl::segmenting* const found = moved.segments_here();
    const bool tries = alone != 0 && moved.size() > 1 &&
                       (moved.pieces_pay() ? ddl::mpi::host_segments : ddl::mpi::whole_segments).short_bytes > 0;
    BOOST_TEST((found != nullptr || !tries));
    const ddl::mpi pair = moved.split(moved.rank() / 2, 0);  // not alone on its cores, whatever it finds
    if (alone == 0 && pair.size() > 1) {
        BOOST_TEST(!pair.uncrowded());
        BOOST_TEST((pair.segments_here() != nullptr) == (found != nullptr));
        for (const ddl::passage way : {ddl::passage::one_way, ddl::passage::both_ways})
            BOOST_TEST(ddl::cut_of(pair).longest_short(way) == ddl::cut_of(moved).longest_short(way));
    }
    if (found == nullptr) return;
    BOOST_TEST(&ddl::cut_of(moved) == found);
    for (const ddl::passage way : {ddl::passage::one_way, ddl::passage::both_ways}) {
        const auto ours = static_cast<unsigned long long>(found->longest_short(way));
        unsigned long long all[2] = {ours, ~ours};
        MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
        BOOST_TEST((all[0] == ours && all[1] == ~ours));
        BOOST_TEST((ours >= found->short_bytes && ours <= ddl::mpi::host_segments.longest_short(way)));
    }
}

BOOST_AUTO_TEST_CASE(it_knows_which_cores_ranks_are_bound_to) {
    cpu_set_t before;
    BOOST_REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    std::vector<std::size_t> cores;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &before)) cores.push_back(core);
    int usable = static_cast<int>(cores.size());
    MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (usable < 2) return;  // a launcher has bound them already
    const ddl::mpi free{MPI_COMM_WORLD, patient};
    BOOST_TEST(!free.dealt_in_turn());
    for (int peer = 0; peer < free.size(); ++peer) BOOST_TEST(!free.beside(peer));
    const auto bound = [&](int index) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cores[static_cast<std::size_t>(index)], &one);
        BOOST_REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
        ddl::mpi wire{MPI_COMM_WORLD, patient};
        std::vector<int> indices(static_cast<std::size_t>(wire.size()));
        MPI_Allgather(&index, 1, MPI_INT, indices.data(), 1, MPI_INT, MPI_COMM_WORLD);
        ddl::mpi moved{std::move(wire)};
        for (int peer = 0; peer < moved.size(); ++peer)
            BOOST_TEST(moved.beside(peer) ==
                       (peer != moved.rank() && indices[static_cast<std::size_t>(peer)] == index));
        std::sort(indices.begin(), indices.end());
        const bool together = std::adjacent_find(indices.begin(), indices.end()) != indices.end();
        BOOST_TEST(moved.uncrowded() != together, "a core that others are bound to is no rank's own");
        return moved.dealt_in_turn();
    };
    BOOST_TEST(bound(free.rank() % 2) == (free.size() == 4), "0 1 0 1");
    BOOST_TEST(!bound(2 * free.rank() / free.size()), "0 0 1 1");
    BOOST_TEST(!bound(0), "all on one");
    BOOST_REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}

BOOST_AUTO_TEST_CASE(who_leaves_a_split_that_a_peer_has_given_up_awaits_nothing_any_more) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    if (wire.size() == 1) return;
    ddl::mpi pair = wire.split(wire.rank() < 2 ? 0 : 1, wire.rank());
    if (wire.rank() == 0) {
        char came = 0;  // the other one is there
        MPI_Recv(&came, 1, MPI_BYTE, 1, ddl::mpi::meeting_tag, pair.communicator(), MPI_STATUS_IGNORE);
        pair.fail(ddl::errc::system, "rank 0 gave up");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(&came, 1, MPI_BYTE, 1, ddl::mpi::meeting_tag, pair.communicator());
    } else {
        if (wire.rank() == 1) BOOST_CHECK_THROW(pair.split(0, 0), ddl::error);
        MPI_Barrier(MPI_COMM_WORLD);
        const double late = ddl::now() + 20;
        int found = 0;
        while (wire.rank() == 1 && found == 0 && ddl::now() < late)
            MPI_Iprobe(0, ddl::mpi::meeting_tag, pair.communicator(), &found, MPI_STATUS_IGNORE);
        BOOST_TEST((found != 0) == (wire.rank() == 1), "a receive of the split has taken it");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

BOOST_AUTO_TEST_CASE(a_forked_child_that_destroys_it_takes_nothing_from_its_parent) {
    auto wire = std::make_unique<ddl::mpi>(MPI_COMM_WORLD, ddl::timeout{20});
    std::vector<::pid_t> children;
    for (int i = 0; i < 100; ++i) {
        if (i % 10 == 3) {  // while messages are under way
            children.push_back(::fork());
            if (children.back() == 0) {
                wire.reset();
                ::_exit(0);
            }
        }
        std::vector<float> values(1000, 1);
        BOOST_REQUIRE_NO_THROW(ddl::reduce(*wire, values));
        BOOST_REQUIRE_NO_THROW(ddl::broadcast(*wire, values));
        BOOST_TEST(values.back() == static_cast<float>(wire->size()));
    }
    for (const ::pid_t child : children) {
        int status = -1;
        ::waitpid(child, &status, 0);
        BOOST_TEST(status == 0);
    }
}

BOOST_AUTO_TEST_CASE(word_of_another_communicator_that_had_the_same_number_is_dropped) {
    ddl::mpi wire{MPI_COMM_WORLD, patient};
    const std::uint64_t another = ~std::uint64_t{0};
    MPI_Request sent = MPI_REQUEST_NULL;
    const int right = (wire.rank() + 1) % wire.size(), left = (wire.rank() + wire.size() - 1) % wire.size();
    MPI_Isend(&another, sizeof another, MPI_BYTE, right, ddl::mpi::fault_tag, wire.communicator(), &sent);
    MPI_Probe(left, ddl::mpi::fault_tag, wire.communicator(), MPI_STATUS_IGNORE);
    BOOST_CHECK_NO_THROW(wire.listen(here));
    int waits = 0;
    MPI_Iprobe(left, ddl::mpi::fault_tag, wire.communicator(), &waits, MPI_STATUS_IGNORE);
    BOOST_TEST(waits == 0);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (wire.rank() == 0) wire.fail(ddl::errc::system, "rank 0 gave up");
    MPI_Barrier(MPI_COMM_WORLD);
    const double late = ddl::now() + 20;
    bool heard = false;
    while (!heard && ddl::now() < late) try {
            wire.listen(here);
        } catch (const ddl::error& failure) {
            heard = std::string(failure.what()).find("rank 0 gave up") != std::string::npos;
        }
    BOOST_TEST(heard, "but its own is heard");
}
