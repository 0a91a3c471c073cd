// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce_scatter.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <functional>
#include <utility>

#include "../collective/device_of_files.hpp"
#include "team.hpp"

namespace data = boost::unit_test::data;

namespace {

using node_type = ddl::shared_memory;
using grid = grid_of_files<node_type>;
using way = ddl::exported_memory::way;

/// The same, of a program that was compiled with a table of grids.
struct tuned_grid : grid {
    using grid::grid;
};

}  // namespace

template <>
inline constexpr ddl::grid_limits ddl::grid_limits_of<tuned_grid>{.grids = {{2, 1'000'000, 1}}};

namespace {

enum class gpus { own, shared, pairs };
std::ostream& operator<<(std::ostream& out, gpus which) {
    return out << (which == gpus::own ? "a GPU each" : which == gpus::shared ? "one GPU" : "a GPU for two");
}
int gpu_of(gpus which, int rank) { return which == gpus::own ? rank : which == gpus::shared ? 0 : rank / 2; }

/// One process a rank, whose device it is that `which` says.
template <class Body>
void run_grids(int ranks, gpus which, Body body) {
    run_team(ranks, [&](node_type& node) {
        grid team{node, gpu_of(which, node.rank())};
        body(team);
    });
}

template <class Range>
void expect_sum(grid& team, Range&& values) {
    expect_fold("a sum", std::span<const int>(values.data(), values.size()), team.size(), ddl::sum{},
                [](int rank) { return rank; });
}

constexpr std::size_t short_and_long[] = {0, 1, 7, 1000, 16'384, 16'385, 40'001};

}  // namespace

BOOST_DATA_TEST_CASE(vectors_of_all_processes_are_folded,
                     data::make({1, 2, 3, 5}) * data::make({gpus::own, gpus::shared, gpus::pairs}), ranks, which) {
    run_grids(ranks, which, [&](grid& team) {
        EXPECT(team.blocks_meet() == (which == gpus::own || team.size() == 1));
        for (const std::size_t count : short_and_long)
            for (const way how : {way::by_handle, way::by_file}) {
                device_values<int> in{team.device(), count, how, 3};
                device_values<int> out{team.device(), count, team.rank() == 0 ? way::by_file : how};
                fill(in.span(), team.rank());
                ddl::allreduce(team, in, out);
                expect_sum(team, out);
                expect_values("the input", in.span(), team.rank());
                ddl::allreduce(team, in);
                expect_sum(team, in);
            }
        ddl::barrier(team);
    });
}

BOOST_DATA_TEST_CASE(the_other_collectives_reach_the_same_memory, data::make({gpus::own, gpus::shared}), which) {
    run_grids(3, which, [](grid& team) {
        constexpr std::size_t count = 20'001;
        const auto mine = ddl::block(count, 3, team.rank());
        device_values<int> all{team.device(), count};
        device_values<int> part{team.device(), mine.count, way::by_file};
        fill(all.span(), team.rank());
        ddl::reduce_scatter(team, all, part);
        expect_fold("a block", part.span(), 3, ddl::sum{}, mine.first);
        ddl::all_gather(team, part, all);
        expect_sum(team, all);
        fill(all.span(), team.rank());
        ddl::broadcast(team, all, 2);
        expect_values("what rank 2 had", all.span(), 2);
        fill(part.span(), team.rank(), mine.first);
        std::span<int> nowhere;
        if (team.rank() == 1) ddl::gather(team, part, all, 1);
        else ddl::gather(team, part, nowhere, 1);
        for (int rank = 0; rank < 3 && team.rank() == 1; ++rank) {
            const auto block = ddl::block(count, 3, rank);
            expect_values("a block", all.span().subspan(block.first, block.count), rank, block.first);
        }
    });
}

BOOST_DATA_TEST_CASE(many_tensors_of_many_allocations_are_folded,
                     data::make({gpus::own, gpus::shared}) * data::make({way::by_handle, way::by_file}), which, how) {
    run_grids(3, which, [&](grid& team) {
        std::vector<std::unique_ptr<device_values<int>>> memory;
        std::vector<std::span<int>> tensors;
        for (std::size_t i = 0; i < 150; ++i) {
            memory.push_back(std::make_unique<device_values<int>>(team.device(), 40 * i + 9, how));
            tensors.push_back(memory.back()->span().first(5));
            tensors.push_back(memory.back()->span().subspan(9));
        }
        const int before = team.device().identified;
        for (int turn = 0; turn < 2; ++turn) {
            for (const auto& each : tensors) fill(each, team.rank());
            ddl::allreduce_n(team, tensors);
            for (const auto& each : tensors) expect_sum(team, each);
        }
        EXPECT(team.device().opens == 2 * (1 + 150));
        EXPECT(team.device().identified - before == 2 * 150);  // once for the two tensors of each
    });
}

BOOST_AUTO_TEST_CASE(files_that_nobody_takes_are_not_lost_in_silence) {
    const ddl::file_post sender{0};
    const ddl::file_post receiver{1};
    const ddl::descriptor file{::memfd_create("file", MFD_CLOEXEC)};
    BOOST_CHECK_THROW(sender.send(receiver.address(), 0, ddl::descriptor{}), ddl::error);
    int sent = 0;
    BOOST_CHECK_THROW(for (; sent < 1'000'000; ++sent) sender.send(receiver.address(), 0, file), ddl::error);
    while (receiver.receive()) --sent;
    BOOST_TEST(sent == 0);
}

BOOST_DATA_TEST_CASE(memory_is_opened_once, data::make({gpus::own, gpus::shared}), which) {
    run_grids(3, which, [](grid& team) {
        device_values<int> values{team.device(), 1000};
        device_values<int> sent{team.device(), 1000, way::by_file};
        for (int turn = 0; turn < 5; ++turn)
            for (auto* each : {&values, &sent}) {
                fill(each->span(), team.rank());
                ddl::allreduce(team, *each);
                expect_sum(team, *each);
            }
        EXPECT(team.device().opens == 2 + 2 * 2);  // windows, and two buffers of each peer
        EXPECT(team.device().exports == 1 + 1 + 2);
        EXPECT(team.device().closes == 0);
        team.forget();
        EXPECT(team.device().closes == 4);
        fill(values.span(), team.rank());
        ddl::allreduce(team, values);
        expect_sum(team, values);
        EXPECT(team.device().opens == 6 + 2);
    });
}

BOOST_DATA_TEST_CASE(memory_that_was_freed_is_noticed_at_the_same_address,
                     data::make({way::by_handle, way::by_file}) * data::make({true, false}), how, numbered) {
    run_grids(3, gpus::own, [&](grid& team) {
        team.device().tells_numbers = numbered;
        void* place = nullptr;
        for (int turn = 0; turn < 4; ++turn) {
            device_values<int> values{team.device(), 5000, how, 0, place};
            EXPECT(place == nullptr || place == values.first());
            place = values.first();
            fill(values.span(), team.rank());
            ddl::allreduce(team, values);
            expect_sum(team, values);
        }
        EXPECT(team.device().opens - team.device().closes == 2 + 2);  // the windows and what was used last
    });
}

BOOST_AUTO_TEST_CASE(few_of_many_allocations_stay_open) {
    run_grids(2, gpus::own, [](grid& team) {
        std::vector<std::unique_ptr<device_values<int>>> many;
        for (int i = 0; i < 100; ++i) many.push_back(std::make_unique<device_values<int>>(team.device(), 10));
        for (int turn = 0; turn < 2; ++turn)
            for (auto& each : many) {
                fill(each->span(), team.rank());
                ddl::allreduce(team, *each);
                expect_sum(team, *each);
            }
        constexpr int most = ddl::ipc_mappings<device_of_files>::most;
        EXPECT(team.device().opens - team.device().closes == 1 + most);
    });
}

BOOST_DATA_TEST_CASE(memory_that_cannot_be_shared_is_refused_and_the_others_are_told,
                     data::make({gpus::own, gpus::shared}), which) {
    run_grids(3, which, [](grid& team) {
        device_values<int> values{team.device(), 10};
        fill(values.span(), team.rank());
        std::vector<int> elsewhere(10);
        if (team.rank() == 1)
            expect_error(ddl::errc::invalid_argument, "out cannot be shared",
                         [&] { ddl::allreduce(team, values, elsewhere); });
        else expect_error(ddl::errc::mismatch, "see its own error", [&] { ddl::allreduce(team, values); });
        auto captured = team.on(device_of_files::captured);
        if (team.rank() == 2)
            expect_error(ddl::errc::invalid_argument, "under capture", [&] { ddl::allreduce(captured, values); });
        else expect_error(ddl::errc::mismatch, "see its own error", [&] { ddl::allreduce(team, values); });
        EXPECT(team.device().launches == 0);
        expect_error(ddl::errc::invalid_argument, "under capture", [&] { captured.wait(); });
        ddl::allreduce(team, values);  // the communicator is as good as before
        expect_sum(team, values);
    });
}

BOOST_DATA_TEST_CASE(nothing_is_launched_if_one_rank_cannot_open_a_buffer,
                     data::make({gpus::own, gpus::shared}) * data::make({way::by_handle, way::by_file}), which, how) {
    run_grids(3, which, [&](grid& team) {
        device_values<int> values{team.device(), 10, how};
        fill(values.span(), team.rank());
        if (team.rank() == 1) team.device().opens_before_refusal = 1;
        expect_error(ddl::errc::system, "nothing can be opened", [&] { ddl::allreduce(team, values); });
        EXPECT(team.device().launches == 0);
        expect_values("the input", values.span(), team.rank());
        expect_error(ddl::errc::broken, "nothing can be opened", [&] { ddl::allreduce(team, values); });
    });
}

BOOST_DATA_TEST_CASE(a_grid_that_does_not_start_keeps_nobody_waiting, data::make({gpus::own, gpus::shared}), which) {
    run_grids(3, which, [](grid& team) {
        device_values<int> values{team.device(), 100'000};
        const double start = ddl::now();
        if (team.rank() == 2) team.device().refuses_launch = true;
        expect_error(ddl::errc::system, "nothing can be launched", [&] { ddl::allreduce(team, values); });
        EXPECT(ddl::now() - start < 60);
    });
}

BOOST_AUTO_TEST_CASE(a_device_that_fails_is_told_to_the_others) {
    run_grids(3, gpus::own, [](grid& team) {
        device_values<int> values{team.device(), 100'000};
        if (team.rank() == 1) team.device().breaks = true;
        expect_error(ddl::errc::system, "the device has failed", [&] { ddl::allreduce(team, values); });
    });
}

namespace {

/// A grid whose rank can be held up when it is about to launch.
struct held_up_grid : grid {
    using grid::grid;
    template <class Body>
    void launch(const Body& body, ddl::grid_shape shape, const entry* entries, const ddl::call_site& where) {
        if (before_launch) before_launch();
        grid::launch(body, shape, entries, where);
    }
    std::function<void()> before_launch;
};

}  // namespace

BOOST_DATA_TEST_CASE(who_comes_late_does_not_launch_into_buffers_that_were_given_up,
                     data::make({2, 2, 3, 3}) ^ data::make({gpus::own, gpus::shared, gpus::own, gpus::shared}) ^
                         data::make({true, false, false, true}),
                     ranks, which, opening) {
    const marks given_up;
    const marks heard;
    run_team(ranks, [&](node_type& node) {
        held_up_grid team{node, gpu_of(which, node.rank())};
        device_values<int> values{team.device(), 10'000};
        ddl::barrier(node);
        team.set_timeout(ddl::timeout{1});
        const bool late = team.rank() == 1;
        const auto held_up = [&, peers = ranks - 1]() mutable { EXPECT(given_up.wait_for(std::exchange(peers, 0))); };
        if (late && opening) team.device().before_open = held_up;
        if (late && !opening) team.before_launch = held_up;
        expect_error(ddl::errc::timeout, late ? "a peer gave up" : "rank 1 did not arrive",
                     [&] { ddl::allreduce(team, values); });
        EXPECT(team.device().launches == 0 || !(late || opening));
        if (!late) given_up.leave();
        for (int peer = 1; late && peer < ranks; ++peer) heard.leave();
        EXPECT(late || heard.wait_for(1));  // who comes late finds us alive
    });
}

BOOST_AUTO_TEST_CASE(a_grid_that_begins_late_leaves_buffers_alone_that_were_given_up) {
    const marks given_up;
    const marks gone;
    run_team(2, [&](node_type& node) {
        grid team{node, node.rank()};
        device_values<int> values{team.device(), 100'000};
        fill(values.span(), team.rank());
        ddl::barrier(node);
        team.set_timeout(ddl::timeout{1});
        auto later = team.on(7);
        if (team.rank() == 1) team.device().held = true;
        ddl::allreduce(later, values);
        if (team.rank() == 0) {
            expect_error(ddl::errc::timeout, "the grid of rank 1 did not arrive", [&] { later.wait(); });
            fill(values.span(), 5);
            given_up.leave();
            EXPECT(gone.wait_for(1));
            expect_values("what is the caller's again", values.span(), 5);
        } else {
            EXPECT(given_up.wait_for(1));
            team.device().held = false;
            expect_error(ddl::errc::timeout, "the grid of rank 1 did not arrive", [&] { later.wait(); });
            gone.leave();
        }
    });
}

BOOST_AUTO_TEST_CASE(who_gives_up_leaves_its_buffers_to_those_that_are_at_work_there) {
    const marks given_up;
    const marks gone;
    run_grids(2, gpus::own, [&](grid& team) {
        constexpr int blocks = device_of_files::most_blocks();
        device_values<int> values{team.device(), 100'000};
        fill(values.span(), team.rank());
        ddl::barrier(team);
        if (team.rank() == 0) {
            team.set_timeout(ddl::timeout{0.1});
            team.device().when_giving_up = [&] {
                for (int block = 0; block < blocks; ++block) given_up.leave();
            };
            expect_error(ddl::errc::timeout, "rank 1 did not arrive", [&] { ddl::allreduce(team, values); });
            fill(values.span(), 5);
            EXPECT(gone.wait_for(1));
            expect_values("what is the caller's again", values.span(), 5);
        } else {
            team.device().before_fold = [&] {
                given_up.wait_for(1);
                sleep_for(0.2);
            };
            try {
                ddl::allreduce(team, values);
            } catch (const ddl::error&) {}  // whether it hears of it in time
            gone.leave();
        }
    });
}

BOOST_AUTO_TEST_CASE(processes_of_other_grids_are_told_before_anything_is_launched) {
    run_team(2, [](node_type& node) {
        const auto call = [&](auto team) {
            device_values<int> values{team.device(), 20'000};
            expect_error(ddl::errc::mismatch, "was compiled with other limits", [&] { ddl::allreduce(team, values); });
            EXPECT(team.device().launches == 0);
        };
        node.rank() == 0 ? call(grid{node, 0}) : call(tuned_grid{node, 1});
    });
}

BOOST_AUTO_TEST_CASE(a_rank_without_a_device_is_told_to_all) {
    run_team(3, [](node_type& node) {
        expect_error(ddl::errc::system, "there is no such device", [&] { grid{node, node.rank() == 1 ? -1 : 0}; });
        grid team{node, node.rank()};  // the host's communicator is as good as before
        device_values<int> values{team.device(), 10};
        fill(values.span(), team.rank());
        ddl::allreduce(team, values);
        expect_sum(team, values);
    });
}

BOOST_DATA_TEST_CASE(a_window_stays_for_a_while_as_long_as_a_peer_has_it_open, data::make({0.05, 6.0}), seconds) {
    run_team(3, [&](node_type& node) {
        double closed = 0;
        {
            grid team{node, node.rank()};
            ddl::barrier(team);
            if (team.rank() == 1) {
                sleep_for(seconds);
                closed = ddl::now();
            }
        }
        const double left = ddl::now();
        ddl::broadcast(node, std::span{&closed, 1}, 1);
        EXPECT((left >= closed) == (seconds < 2 || node.rank() == 1));  // after 2 s they go without it
        grid again{node, node.rank()};
    });
}

BOOST_DATA_TEST_CASE(a_call_waits_for_what_its_stream_was_given, data::make({gpus::shared, gpus::pairs}), which) {
    run_grids(4, which, [](grid& team) {
        device_values<int> values{team.device(), 100};
        auto later = team.on(7);
        team.device().lag = [&] { fill(values.span(), team.rank()); };
        team.device().lag_until = ddl::now() + 0.02 * (1 + team.rank());
        ddl::allreduce(later, values);
        expect_sum(team, values);  // where ranks share a GPU the call ends with its grid
    });
}

BOOST_AUTO_TEST_CASE(calls_that_were_enqueued_follow_each_other) {
    run_grids(3, gpus::own, [](grid& team) {
        device_values<int> values{team.device(), 40'000};
        device_values<int> others{team.device(), 100};
        fill(values.span(), team.rank());
        fill(others.span(), team.rank());
        team.device().held = true;
        auto later = team.on(7);
        ddl::allreduce(later, values);
        EXPECT(!team.device().is_idle());
        team.device().held = false;
        ddl::allreduce(later, others);
        later.wait();
        expect_sum(team, values);
        expect_sum(team, others);
    });
}

BOOST_AUTO_TEST_CASE(a_wait_is_for_calls_on_all_streams) {
    run_grids(3, gpus::own, [](grid& team) {
        device_values<int> values{team.device(), 40'000};
        fill(values.span(), team.rank());
        team.device().delay = 0.2;
        auto later = team.on(7);
        ddl::allreduce(later, values);
        team.wait();
        expect_sum(team, values);
    });
}

BOOST_AUTO_TEST_CASE(a_wait_tells_of_a_call_that_a_failed_one_has_stopped) {
    run_grids(2, gpus::own, [](grid& team) {
        device_values<int> values{team.device(), 100'000};
        ddl::barrier(team);
        const bool fails = team.rank() == 1;
        // this device launches when the grid before has ended, which waits for its peer
        if (!fails) team.set_timeout(ddl::timeout{5});
        auto later = team.on(7);
        team.device().held = fails;
        team.device().when_giving_up = [&] { team.device().held = false; };
        ddl::allreduce(later, values);
        team.device().refuses_launch = fails;
        const auto fail = [&] {
            expect_error(ddl::errc::system, "nothing can be launched", [&] { ddl::allreduce(later, values); });
            expect_error(ddl::errc::broken, "nothing can be launched", [&] { later.wait(); });
        };
        if (fails) return fail();
        try {
            ddl::allreduce(later, values);
        } catch (const ddl::error&) {}  // whichever it hears of first
    });
}

BOOST_AUTO_TEST_CASE(whoever_leaves_waits_for_grids_that_have_yet_to_begin) {
    run_team(2, [](node_type& node) {
        std::thread own_work;
        {
            grid team{node, node.rank()};
            const std::span values{reinterpret_cast<int*>(team.device().take(160'000)),
                                   40'000};  // goes with the device
            auto later = team.on(7);
            team.device().held = true;
            ddl::allreduce(later, values);
            team.set_timeout(ddl::timeout{0.01});  // the caller's own work on the stream takes longer
            own_work = std::thread{[&device = team.device()] {
                sleep_for(1.2);
                device.held = false;
            }};
        }  // closes peers' memory, which no grid may use any more
        own_work.join();
    });
}

BOOST_AUTO_TEST_CASE(a_request_is_done_when_its_grid_is) {
    run_grids(3, gpus::own, [](grid& team) {
        device_values<int> values{team.device(), 40'000};
        fill(values.span(), team.rank());
        team.device().delay = 0.2;
        auto later = team.on(7);
        const ddl::request call = ddl::allreduce_async(later, values);
        call.wait();
        EXPECT(team.device().is_idle() && team.device().launches == 1);
        EXPECT(team.device().marked == 0);
        expect_sum(team, values);
    });
}

namespace {
template <class Results>
void survivors_know_that_rank_1_has_ended(const Results& results) {
    for (const std::size_t survivor : {0U, 2U})
        BOOST_TEST((results[survivor].is(ddl::errc::peer_lost) && results[survivor].mentions("rank 1 has ended")),
                   "rank " << survivor << " " << results[survivor]);
}
}  // namespace

BOOST_DATA_TEST_CASE(a_process_that_dies_is_told_to_the_others,
                     data::make({gpus::own, gpus::shared}) * data::make({0, 1}), which, turns) {
    children ranks;
    const std::string job = fresh_job();
    const marks under_way;
    for (int rank = 0; rank < 3; ++rank)
        ranks.start([&, rank] {
            node_type node{job, rank, 3, ddl::timeout{100}};
            grid team{node, gpu_of(which, rank)};
            // goes with the device: who throws leaves a grid that may be at work, for which cudaFree would wait
            const std::span values{reinterpret_cast<int*>(team.device().take(200'000)), 50'000};
            fill(values, rank);
            ddl::allreduce(team, values);
            if (rank == 1) {
                under_way.leave();
                if (turns == 0) ::pause();
            }
            for (;;) ddl::allreduce(team, values);
        });
    BOOST_TEST(under_way.wait_for(1));
    sleep_for(0.05);
    const double start = ddl::now();
    ranks.kill(1);
    const auto results = ranks.finish();
    BOOST_TEST(ddl::now() - start < 60);
    survivors_know_that_rank_1_has_ended(results);
}

BOOST_AUTO_TEST_CASE(a_process_that_dies_after_its_launch_is_told_to_the_others) {
    children ranks;
    const std::string job = fresh_job();
    for (int rank = 0; rank < 3; ++rank)
        ranks.start([&, rank] {
            node_type node{job, rank, 3, ddl::timeout{100}};
            grid team{node, rank};
            device_values<int> values{team.device(), 50'000};
            if (rank == 1) team.device().held = true;  // launched, and never there
            auto later = team.on(1);
            ddl::allreduce(later, values);
            if (rank == 1) ::raise(SIGKILL);
            later.wait();
        });
    const double start = ddl::now();
    const auto results = ranks.finish();
    BOOST_TEST(ddl::now() - start < 60);
    survivors_know_that_rank_1_has_ended(results);
}
