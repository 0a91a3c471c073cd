// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/shared_memory.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <numeric>
#include <optional>
#include <sched.h>
#include <thread>

#include "children.hpp"

namespace data = boost::unit_test::data;

namespace {
const ddl::call_site here{"test"};

/// A team of one process a rank, started in `order`, which all run `body(node)`.
template <class Body>
void run(int size, const std::vector<int>& order, const std::string& job, Body body) {
    children ranks;
    for (const int rank : order)
        ranks.start([&] {
            ddl::shared_memory node{job, rank, size, ddl::timeout{100}};
            body(node);
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}
template <class Body>
void run(int size, Body body) {
    std::vector<int> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    run(size, order, fresh_job(), body);
}

/// Every rank learns what the others brought.
void exchange_ranks(ddl::shared_memory& node) {
    for (std::uint64_t turn = 0; turn < 20; ++turn) {
        const auto values = node.exchange(100 * turn + static_cast<std::uint64_t>(node.rank()), here);
        EXPECT(values.size() == static_cast<std::size_t>(node.size()));
        for (std::size_t peer = 0; peer < values.size(); ++peer) EXPECT(values[peer] == 100 * turn + peer);
    }
}

/// Sees a process that does nothing else: `body` gets a job and throws the error of interest.
outcome one(const std::function<void()>& body) {
    children alone;
    alone.start(body);
    return alone.finish()[0];
}

/// A rank that calls after another has found the loss learns of it in the same words, as of a broken communicator.
bool lost(const outcome& result, const char* who) {
    return (result.is(ddl::errc::peer_lost) || result.is(ddl::errc::broken)) &&
           result.mentions((std::string{who} + " has ended").c_str());
}

void set(const char* variable, const char* value) { ::setenv(variable, value, 1); }
void clear_environment() {
    for (const char* variable :
         {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
          "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "DDL_JOB", "DDL_TIMEOUT"})
        ::unsetenv(variable);
}
}  // namespace

BOOST_AUTO_TEST_SUITE(ranks_meet)

BOOST_DATA_TEST_CASE(any_number_of_processes_and_each_learns_what_the_others_brought, data::xrange(1, 10), size) {
    run(size, exchange_ranks);
}

BOOST_AUTO_TEST_CASE(in_any_order) {
    std::vector<int> order{0, 1, 2};
    do run(3, order, fresh_job(), exchange_ranks);
    while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE(when_rank_0_starts_last_and_late) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 3; rank >= 0; --rank)
        ranks.start([&, rank] {
            if (rank == 0) sleep_for(0.5);
            ddl::shared_memory node{job, rank, 4, ddl::timeout{100}};
            exchange_ranks(node);
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(as_threads_of_one_process_too) {
    const outcome result = one([job = fresh_job()] {
        std::thread other{[&] {
            ddl::shared_memory node{job, 1, 2, ddl::timeout{100}};
            exchange_ranks(node);
        }};
        {
            ddl::shared_memory node{job, 0, 2, ddl::timeout{100}};
            exchange_ranks(node);
        }
        other.join();
    });
    BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(again_under_the_same_name) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 3; ++rank)
        ranks.start([&, rank] {
            for (int turn = 0; turn < 10; ++turn) {
                ddl::shared_memory node{job, rank, 3, ddl::timeout{100}};
                exchange_ranks(node);
            }
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(again_after_all_were_killed) {
    const std::string job = fresh_job();
    const auto before = left_behind();
    for (int turn = 0; turn < 3; ++turn) {
        marks ready;
        children ranks;
        for (int rank = 0; rank < 3; ++rank)
            ranks.start([&, rank] {
                ddl::shared_memory node{job, rank, 3, ddl::timeout{100}};
                node.allocate(std::size_t{1} << 20);
                exchange_ranks(node);
                ready.leave();
                ::pause();
            });
        BOOST_TEST(ready.wait_for(3));
        BOOST_TEST(left_behind() == before);
        ranks.kill_all();
    }
    run(3, {0, 1, 2}, job, exchange_ranks);
    BOOST_TEST(left_behind() == before);
}

BOOST_AUTO_TEST_CASE(where_the_standard_streams_are_closed_but_written_to) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 2; ++rank)
        ranks.start([&, rank] {
            for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
            ddl::shared_memory node{job, rank, 2, ddl::timeout{100}};
            const ddl::request done;
            EXPECT(done.descriptor() > STDERR_FILENO);
            const std::string words(700, 'x');
            for (int turn = 0; turn < 20; ++turn)
                EXPECT(::write(STDERR_FILENO, words.data(), words.size()) == -1 && errno == EBADF);
            exchange_ranks(node);
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(in_spite_of_signals) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 3; ++rank)
        ranks.start([&, rank] {
            struct sigaction ignore {};
            ignore.sa_handler = [](int) {};  // no SA_RESTART: system calls return EINTR
            ::sigaction(SIGPROF, &ignore, nullptr);
            ::sigaction(SIGVTALRM, &ignore, nullptr);
            timer_t timer{};
            sigevent event{};
            event.sigev_notify = SIGEV_SIGNAL;
            event.sigev_signo = SIGPROF;
            EXPECT(::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
            const itimerspec often{{0, 1'000'000}, {0, 1'000'000}};
            EXPECT(::timer_settime(timer, 0, &often, nullptr) == 0);
            if (rank == 0) {
                const double start = ddl::now();
                while (ddl::now() - start < 0.3) {}
            }
            ddl::shared_memory node{job, rank, 3, ddl::timeout{100}};
            node.deallocate(node.allocate(std::size_t{1} << 26), std::size_t{1} << 26);
            exchange_ranks(node);
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(a_meeting_that_fails_says_why)

BOOST_AUTO_TEST_CASE(missing_ranks_are_named_to_all_who_came) {
    const std::string job = fresh_job();
    children ranks;
    for (const int rank : {0, 2, 4}) ranks.start([&, rank] { ddl::shared_memory{job, rank, 5, ddl::timeout{3}}; });
    for (const outcome& result : ranks.finish()) {
        BOOST_TEST(result.is(ddl::errc::timeout), result);
        BOOST_TEST(result.mentions("ranks 1, 3 did not start within 3 s"), result);
        BOOST_TEST(result.mentions(job.c_str()), result);
    }
}

BOOST_AUTO_TEST_CASE(whichever_of_them_loses_patience_first) {
    for (const int impatient : {0, 1, 2}) {
        const std::string job = fresh_job();
        children ranks;
        for (int rank = 0; rank < 3; ++rank)
            ranks.start([&, rank] { ddl::shared_memory{job, rank, 4, ddl::timeout{rank == impatient ? 3.0 : 100.0}}; });
        for (const outcome& result : ranks.finish()) {
            BOOST_TEST(result.is(ddl::errc::timeout), result);
            BOOST_TEST(result.mentions("rank 3 did not start within 3 s"), result);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_rank_that_the_system_refuses_something_tells_the_others) {
    const std::string job = fresh_job();
    marks taken;
    children ranks;
    ranks.start([&] { ddl::shared_memory{job, 0, 3, ddl::timeout{100}}; });
    ranks.start([&] {
        EXPECT(taken.wait_for(1));
        ddl::shared_memory{job, 1, 3, ddl::timeout{100}};
    });
    ranks.start([&] {
        ddl::rendezvous meeting{job, 2, 3, ddl::timeout{100}};
        ddl::shared_heap heap{meeting.attend(), 2, 3};
        EXPECT(heap.hold(ddl::shared_heap::first_address + 1));  // the lock of rank 1
        taken.leave();
        meeting.await_all([](int) { return false; });
    });
    for (const outcome& result : ranks.finish()) {
        BOOST_TEST(result.is(ddl::errc::system), result);
        BOOST_TEST(result.mentions("a lock on the shared memory"), result);
    }
}

BOOST_AUTO_TEST_CASE(and_so_does_rank_0) {
    const std::string job = fresh_job();
    marks about_to_come;
    children ranks;
    for (int rank = 0; rank < 3; ++rank)
        ranks.start([&, rank] {
            const rlimit longest{1 << 20, 1 << 20};
            if (rank == 0) {
                EXPECT(about_to_come.wait_for(2));
                sleep_for(5);  // so that they are there
                ::setrlimit(RLIMIT_FSIZE, &longest);
            } else {
                about_to_come.leave();
            }
            ddl::shared_memory{job, rank, 3, ddl::timeout{100}};
        });
    for (const outcome& result : ranks.finish()) {
        BOOST_TEST(result.is(ddl::errc::system), result);
        BOOST_TEST(result.mentions("ulimit -f"), result);
    }
}

BOOST_AUTO_TEST_CASE(where_there_is_no_proc_it_is_asked_for) {
    const outcome result = one([job = fresh_job()] {
        constexpr const char* without_proc = "/etc";
        if (::chroot(without_proc) != 0 && (::unshare(CLONE_NEWUSER) != 0 || ::chroot(without_proc) != 0)) return;
        ddl::shared_memory{job, 0, 1};
    });
    if (result.how == outcome::returned) return;  // the system lets nobody go there
    BOOST_TEST(result.is(ddl::errc::system), result);
    BOOST_TEST(result.mentions("mount it"), result);
}

BOOST_AUTO_TEST_CASE(a_missing_rank_0_is_named_too) {
    const outcome result = one([job = fresh_job()] { ddl::shared_memory{job, 1, 2, ddl::timeout{0.3}}; });
    BOOST_TEST(result.is(ddl::errc::timeout), result);
    BOOST_TEST(result.mentions("rank 0 did not start within 0.3 s"), result);
}

BOOST_AUTO_TEST_CASE(whoever_goes_on_to_connect) {
    const std::string job = fresh_job();
    const marks over;
    children all;
    all.start([&] {
        try {
            ddl::shared_memory{job, 0, 2, ddl::timeout{0.5}};
        } catch (const ddl::error&) {
            over.leave();
            throw;
        }
    });
    all.start([&] {
        std::thread{[&] {
            EXPECT(over.wait_for(1));
            ::_exit(0);
        }}.detach();
        for (;;) ddl::local_socket::open().connect(job);
    });
    const outcome result = all.finish()[0];
    BOOST_TEST(result.is(ddl::errc::timeout), result);
    BOOST_TEST(result.mentions("rank 1 did not start within 0.5 s"), result);
}

BOOST_AUTO_TEST_CASE(a_rank_that_comes_twice) {
    const std::string job = fresh_job();
    children ranks;
    for (const int rank : {0, 1, 1}) ranks.start([&, rank] { ddl::shared_memory{job, rank, 3, ddl::timeout{100}}; });
    for (const outcome& result : ranks.finish()) {
        BOOST_TEST(result.is(ddl::errc::mismatch), result);
        BOOST_TEST(result.mentions("rank 1 came twice"), result);
    }
}

BOOST_AUTO_TEST_CASE(a_rank_that_counts_the_ranks_differently) {
    const std::string job = fresh_job();
    children ranks;
    ranks.start([&] { ddl::shared_memory{job, 0, 3, ddl::timeout{100}}; });
    ranks.start([&] { ddl::shared_memory{job, 2, 4, ddl::timeout{100}}; });
    for (const outcome& result : ranks.finish()) {
        BOOST_TEST(result.is(ddl::errc::mismatch), result);
        BOOST_TEST(result.mentions("rank 2 came with 4 ranks in all, rank 0 with 3"), result);
    }
}

BOOST_AUTO_TEST_CASE(a_name_that_a_live_job_has) {
    const std::string job = fresh_job();
    marks ready;
    children first;
    for (int rank = 0; rank < 2; ++rank)
        first.start([&, rank] {
            ddl::shared_memory node{job, rank, 2, ddl::timeout{100}};
            ready.leave();
            ::pause();
        });
    BOOST_TEST(ready.wait_for(2));
    children second;
    for (int rank = 0; rank < 2; ++rank)
        second.start([&, rank] { ddl::shared_memory{job, rank, 2, ddl::timeout{0.5}}; });
    for (const outcome& result : second.finish()) {
        BOOST_TEST(result.is(ddl::errc::timeout), result);
        BOOST_TEST(result.mentions("another process was still rank 0 of it"), result);
    }
    first.kill_all();
}

BOOST_AUTO_TEST_CASE(a_name_that_becomes_free_in_time_is_taken) {
    const std::string job = fresh_job();
    marks ready;
    children first;
    for (int rank = 0; rank < 2; ++rank)
        first.start([&, rank] {
            ddl::shared_memory node{job, rank, 2, ddl::timeout{100}};
            ready.leave();
            ::pause();
        });
    BOOST_TEST(ready.wait_for(2));
    children second;
    for (int rank = 0; rank < 2; ++rank)
        second.start([&, rank] {
            ddl::shared_memory node{job, rank, 2, ddl::timeout{100}};
            exchange_ranks(node);
        });
    sleep_for(0.3);
    first.kill_all();
    for (const outcome& result : second.finish()) BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(a_rank_that_dies_on_the_way) {
    const std::string job = fresh_job();
    marks attends;
    children ranks;
    ranks.start([&] { ddl::shared_memory{job, 0, 4, ddl::timeout{100}}; });
    ranks.start([&] {
        ddl::rendezvous meeting{job, 1, 4, ddl::timeout{100}};
        meeting.attend();  // rank 0 knows of it, and has handed out the file
        EXPECT(attends.wait_for(1));
        ::raise(SIGKILL);
    });
    ranks.start([&] {
        ddl::rendezvous meeting{job, 2, 4, ddl::timeout{100}};
        meeting.attend();
        attends.leave();
        meeting.await_all([](int) { return false; });
    });
    const auto results = ranks.finish();
    for (const std::size_t rank : {0u, 2u}) {
        BOOST_TEST(results[rank].is(ddl::errc::peer_lost), results[rank]);
        BOOST_TEST(results[rank].mentions("rank 1 ended while the ranks met"), results[rank]);
    }
}

BOOST_AUTO_TEST_CASE(rank_0_that_dies_on_the_way) {
    const std::string job = fresh_job();
    children ranks;
    marks greeted;
    ranks.start([&] { ddl::shared_memory{job, 0, 3, ddl::timeout{100}}; });
    ranks.start([&] {
        ddl::rendezvous meeting{job, 1, 3, ddl::timeout{100}};
        const ddl::descriptor file = meeting.attend();
        greeted.leave();
        meeting.await_all([](int) { return false; });
    });
    BOOST_TEST(greeted.wait_for(1));
    ranks.kill(0);
    const outcome result = ranks.finish()[1];
    BOOST_TEST(result.is(ddl::errc::peer_lost), result);
    BOOST_TEST(result.mentions("rank 0 ended while the ranks met"), result);
}

BOOST_DATA_TEST_CASE(a_rank_that_dies_on_the_way_while_a_process_that_it_made_by_fork_lives_on, data::xrange(0, 2),
                     victim) {
    const std::string job = fresh_job();
    const marks attended, forked, over, done;
    children ranks;
    for (int rank = 0; rank < 2; ++rank)
        ranks.start([&, rank] {
            std::thread other;
            if (rank == victim)
                other = std::thread{[&] {
                    EXPECT(attended.wait_for(1));
                    if (::fork() == 0) {
                        forked.leave();
                        ::_exit(done.wait_for(2) ? 0 : 1);
                    }
                    EXPECT(forked.wait_for(1));
                    ::raise(SIGKILL);
                }};
            try {
                ddl::rendezvous meeting{job, rank, 3, ddl::timeout{20}};
                if (rank == 0) {
                    meeting.claim();
                    meeting.host(ddl::shared_heap::create(3), [](int) { return false; });
                }
                meeting.attend();  // rank 0 knows of it
                attended.leave();
                meeting.await_all([](int) { return false; });
            } catch (const ddl::error&) {
                if (rank == victim) other.join();
                for (int i = 0; i < 2; ++i) over.leave();
                throw;
            }
        });
    for (int rank = 0; rank < 2; ++rank)
        ranks.start([&, rank] {
            EXPECT(over.wait_for(1));
            ddl::shared_memory next{job, rank, 2, ddl::timeout{20}};
            exchange_ranks(next);
            done.leave();
        });
    const std::vector<outcome> results = ranks.finish();
    const outcome& survivor = results[victim == 0 ? 1 : 0];
    BOOST_TEST(survivor.is(ddl::errc::peer_lost), survivor);
    BOOST_TEST(survivor.mentions(("rank " + std::to_string(victim) + " ended while the ranks met").c_str()), survivor);
    for (std::size_t each = 2; each < 4; ++each) BOOST_TEST(results[each].how == outcome::returned, results[each]);
}

BOOST_AUTO_TEST_CASE(arguments_that_make_no_sense) {
    for (const auto& [rank, size] : {std::pair{-1, 2}, {2, 2}, {0, 0}, {0, -1}, {0, ddl::shared_heap::most_ranks + 1}})
        BOOST_CHECK_EXCEPTION((ddl::shared_memory{"job", rank, size}), ddl::error,
                              [](const ddl::error& failure) { return failure.code() == ddl::errc::invalid_argument; });
    for (const std::string& job : {std::string{}, std::string(81, 'x')})
        BOOST_CHECK_EXCEPTION((ddl::shared_memory{job, 0, 2}), ddl::error,
                              [](const ddl::error& failure) { return failure.code() == ddl::errc::invalid_argument; });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(the_launcher_tells_in_the_environment)

BOOST_AUTO_TEST_CASE(which_rank_of_how_many_of_which_job) {
    constexpr const char* pairs[][2] = {{"RANK", "WORLD_SIZE"},
                                        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                        {"PMI_RANK", "PMI_SIZE"},
                                        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (const auto& [rank_variable, size_variable] : pairs) {
        const std::string job = fresh_job();
        children ranks;
        for (int rank = 0; rank < 2; ++rank)
            ranks.start([&, rank, rank_variable = rank_variable, size_variable = size_variable] {
                clear_environment();
                set(rank_variable, std::to_string(rank).c_str());
                set(size_variable, "2");
                set("DDL_JOB", job.c_str());
                set("DDL_TIMEOUT", "12.5");
                ddl::shared_memory node;
                EXPECT(node.rank() == rank && node.size() == 2 && node.limit().seconds == 12.5);
                exchange_ranks(node);
            });
        for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
    }
}

BOOST_AUTO_TEST_CASE(and_the_first_launcher_in_the_list_counts) {
    const outcome result = one([] {
        clear_environment();
        set("RANK", "0");
        set("WORLD_SIZE", "1");
        set("SLURM_PROCID", "3");
        set("SLURM_STEP_NUM_TASKS", "8");
        EXPECT(ddl::shared_memory{}.size() == 1);
        EXPECT(ddl::launcher::of_mpi().rank == 3);  // which RANK is no word of
    });
    BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(runs_at_one_time_are_told_apart) {
    for (const bool by_slurm : {true, false}) {
        const std::string name = fresh_job();
        children ranks;
        for (const int run : {0, 1})
            for (const int rank : {0, 1})
                ranks.start([&, run, rank] {
                    const std::string own = name + std::to_string(run);
                    clear_environment();
                    set(by_slurm ? "SLURM_PROCID" : "OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str());
                    set(by_slurm ? "SLURM_STEP_NUM_TASKS" : "OMPI_COMM_WORLD_SIZE", "2");
                    set(by_slurm ? "SLURM_STEP_ID" : "PMIX_NAMESPACE", own.c_str());
                    set("SLURM_JOB_ID", "7");
                    set("DDL_TIMEOUT", "100");
                    if (run != rank) sleep_for(0.3);  // so that ranks of different runs are there first
                    ddl::shared_memory node;
                    for (const std::uint64_t each : node.exchange(static_cast<std::uint64_t>(run), here))
                        EXPECT(each == static_cast<std::uint64_t>(run));
                });
        for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
    }
}

BOOST_AUTO_TEST_CASE(a_process_that_the_script_of_a_batch_job_starts_without_srun_is_alone) {
    const outcome result = one([] {
        clear_environment();
        set("SLURM_PROCID", "0");  // Slurm says so in the script, and of how many tasks srun would make
        set("SLURM_NTASKS", "8");
        set("DDL_TIMEOUT", "5");
        EXPECT(ddl::shared_memory{}.size() == 1);
    });
    BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(a_process_that_nobody_launched_is_alone_and_shares_no_name) {
    const outcome result = one([] {
        clear_environment();
        ddl::shared_memory node;
        ddl::shared_memory same_name;
        EXPECT(node.rank() == 0 && node.size() == 1);
        exchange_ranks(node);
    });
    BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_named) {
    struct {
        const char *rank, *size, *job, *timeout, *named;
    } const wrong[] = {
        {"one", "2", "job", "1", "RANK is \"one\""},
        {"1x", "2", "job", "1", "RANK is \"1x\""},
        {"", "2", "job", "1", "RANK is \"\""},
        {"-1", "2", "job", "1", "RANK is \"-1\""},
        {"0", "0", "job", "1", "WORLD_SIZE is \"0\""},
        {"0", "99999999999", "job", "1", "WORLD_SIZE is"},
        {"2", "2", "job", "1", "RANK is 2 and WORLD_SIZE is 2"},
        {"0", nullptr, "job", "1", "WORLD_SIZE is not set"},
        {nullptr, "2", "job", "1", "RANK is not set"},
        {"0", "2", "", "1", "DDL_JOB is empty"},
        {"0", "2", "job", "soon", "DDL_TIMEOUT is \"soon\""},
        {"0", "2", "job", "-1", "DDL_TIMEOUT is \"-1\""},
    };
    for (const auto& each : wrong) {
        const outcome result = one([&] {
            clear_environment();
            if (each.rank != nullptr) set("RANK", each.rank);
            if (each.size != nullptr) set("WORLD_SIZE", each.size);
            set("DDL_JOB", each.job);
            set("DDL_TIMEOUT", each.timeout);
            ddl::shared_memory node;
        });
        BOOST_TEST(result.is(ddl::errc::invalid_argument), result);
        BOOST_TEST(result.mentions(each.named), result);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(a_rank_that_ends)

BOOST_DATA_TEST_CASE(is_lost_to_all_who_wait_for_it_before_their_timeout, data::xrange(0, 4), victim) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 4; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, 4, ddl::timeout{100}};
            exchange_ranks(node);
            if (rank == victim) {
                sleep_for(0.3);  // the others wait by now
                ::raise(SIGKILL);
            }
            const double start = ddl::now();
            try {
                node.exchange(0, here);
            } catch (const ddl::error& failure) {
                EXPECT(ddl::now() - start < 60);
                EXPECT(failure.code() == ddl::errc::peer_lost);
                const std::string culprit = "rank " + std::to_string(victim) + " has ended";
                EXPECT(std::strstr(failure.what(), culprit.c_str()) != nullptr);
                node.exchange(0, here);  // broken from now on
            }
        });
    const auto results = ranks.finish();
    for (int rank = 0; rank < 4; ++rank) {
        const outcome& result = results[static_cast<std::size_t>(rank)];
        if (rank != victim) BOOST_TEST(result.is(ddl::errc::broken), "rank " << rank << " " << result);
    }
}

BOOST_AUTO_TEST_CASE(is_lost_and_its_name_free_though_a_process_that_it_made_by_fork_lives_on) {
    const std::string job = fresh_job();
    const marks forked, lost, done;
    children ranks;
    for (int rank = 0; rank < 2; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, 2, ddl::timeout{100}};
            exchange_ranks(node);
            if (rank == 0) {
                if (::fork() == 0) {
                    forked.leave();
                    ::_exit(done.wait_for(2) ? 0 : 1);
                }
                EXPECT(forked.wait_for(1));
                ::raise(SIGKILL);
            }
            ddl::errc met{};
            try {
                node.exchange(0, here);
            } catch (const ddl::error& failure) { met = failure.code(); }
            for (int i = 0; i < 2; ++i) lost.leave();
            EXPECT(met == ddl::errc::peer_lost);
        });
    for (int rank = 0; rank < 2; ++rank)
        ranks.start([&, rank] {
            EXPECT(lost.wait_for(1));
            ddl::shared_memory next{job, rank, 2, ddl::timeout{20}};
            exchange_ranks(next);
            done.leave();
        });
    const std::vector<outcome> results = ranks.finish();
    BOOST_TEST(results[0].how == outcome::killed, results[0]);
    for (std::size_t each = 1; each < 4; ++each) BOOST_TEST(results[each].how == outcome::returned, results[each]);
}

BOOST_AUTO_TEST_CASE(well_is_lost_only_to_a_collective_that_it_has_not_done) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 3; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, 3, ddl::timeout{100}};
            for (int turn = 0; turn < 3; ++turn) exchange_ranks(node);
            if (rank == 1) return;
            sleep_for(0.2);
            node.exchange(0, here);
        });
    const auto results = ranks.finish();
    BOOST_TEST(results[1].how == outcome::returned, results[1]);
    for (const std::size_t rank : {0u, 2u}) BOOST_TEST(lost(results[rank], "rank 1"), results[rank]);
}

BOOST_AUTO_TEST_CASE(is_lost_to_a_sub_communicator_too) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 4; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, 4, ddl::timeout{100}};
            ddl::shared_memory pair = node.split(rank / 2, -rank);
            exchange_ranks(pair);
            if (rank == 3) ::raise(SIGKILL);  // rank 0 of its pair
            pair.exchange(0, here);
        });
    const auto results = ranks.finish();
    BOOST_TEST(results[0].how == outcome::returned, results[0]);
    BOOST_TEST(results[1].how == outcome::returned, results[1]);
    BOOST_TEST(results[2].is(ddl::errc::peer_lost), results[2]);
    BOOST_TEST(results[2].mentions("rank 0 has ended"), results[2]);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(split)

BOOST_DATA_TEST_CASE(groups_by_color_in_order_of_key, data::xrange(1, 8), size) {
    run(size, [](ddl::shared_memory& node) {
        const int color = node.rank() % 2;
        ddl::shared_memory group = node.split(color, -node.rank());
        EXPECT(group.size() == (node.size() + 1 - color) / 2);
        const auto members = group.exchange(static_cast<std::uint64_t>(node.rank()), here);
        for (std::size_t place = 0; place < members.size(); ++place)
            EXPECT(members[place] == static_cast<std::uint64_t>(color) + 2 * (members.size() - 1 - place));
        exchange_ranks(group);
        exchange_ranks(node);
        ddl::shared_memory again = group.split(0, group.rank());
        exchange_ranks(again);
    });
}

BOOST_AUTO_TEST_CASE(outlives_its_parent) {
    run(4, [](ddl::shared_memory& node) {
        auto parent = std::make_unique<ddl::shared_memory>(node.split(0, node.rank()));
        ddl::shared_memory group = parent->split(node.rank() % 2, 0);
        parent.reset();
        exchange_ranks(group);
    });
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 4; ++rank)
        ranks.start([&, rank] {
            auto world = std::make_unique<ddl::shared_memory>(job, rank, 4, ddl::timeout{100});
            ddl::shared_memory group = world->split(rank / 2, 0);
            world.reset();
            exchange_ranks(group);
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}

BOOST_AUTO_TEST_CASE(leaves_the_memory_of_its_parent_to_its_parts_and_its_place_to_nobody) {
    run(3, [](ddl::shared_memory& node) {
        auto parent = std::make_unique<ddl::shared_memory>(node.split(0, node.rank()));
        ddl::shared_memory group = parent->split(0, node.rank());
        ddl::errc met{};
        const auto exchange = [&](ddl::shared_memory& ranks) {
            try {
                ranks.exchange(0, here);
            } catch (const ddl::error& failure) { met = failure.code(); }
            return met;
        };
        if (node.rank() == 1) EXPECT(exchange(*parent) == ddl::errc::peer_lost);
        parent.reset();
        ddl::shared_memory other = node.split(0, node.rank());  // where the parent lay there would be no fault any more
        EXPECT(exchange(group) == ddl::errc::peer_lost);        // as rank 1 has told
        other.exchange(0, here);
    });
}

BOOST_AUTO_TEST_CASE(hears_of_a_failure_of_its_parent) {
    run(4, [](ddl::shared_memory& node) {
        ddl::shared_memory group = node.split(node.rank() % 2, 0);
        bool hears = false;
        try {
            node.exchange(0, here);  // in which others may still be
            if (node.rank() == 3) node.fail(ddl::errc::system, "rank 3 gave up");
            for (;;) group.exchange(0, here);
        } catch (const ddl::error& failure) { hears = std::strstr(failure.what(), "rank 3 gave up") != nullptr; }
        EXPECT(hears);
    });
}

BOOST_AUTO_TEST_CASE(again_and_again_uses_the_same_memory) {
    run(3, [](ddl::shared_memory& node) {
        std::uint64_t lowest = ~std::uint64_t{0}, highest = 0;
        for (int turn = 0; turn < 200; ++turn) {
            ddl::shared_memory group = node.split(0, 0);
            group.exchange(static_cast<std::uint64_t>(turn), here);
            std::byte* const probe = node.allocate(1);
            const std::uint64_t address = node.address_of(probe, 1);
            lowest = address < lowest ? address : lowest;
            highest = address > highest ? address : highest;
            node.deallocate(probe, 1);
        }
        EXPECT(highest - lowest <= 64 * ddl::rank_memory::bytes(3, ddl::membership::window_bytes));
    });
}

BOOST_AUTO_TEST_CASE(moves) {
    run(2, [](ddl::shared_memory& node) {
        ddl::shared_memory moved = std::move(node);
        exchange_ranks(moved);
        std::vector<ddl::shared_memory> groups;
        groups.push_back(moved.split(0, 0));
        exchange_ranks(groups[0]);
    });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(a_process_made_by_fork_ends_beside_the_thread_of_nonblocking_calls) {
    children ranks;
    ranks.start([job = fresh_job()] {
        std::optional<ddl::shared_memory> node{std::in_place, job, 0, 1};
        node->queue().push([] {}).wait();
        sleep_for(0.1);  // until the queue's thread waits for more
        const ::pid_t child = ::fork();
        if (child == 0) {
            ::alarm(60);
            node.reset();
            ::_exit(0);
        }
        int ended = -1;
        EXPECT(::waitpid(child, &ended, 0) == child && ended == 0);
        int calls = 0;
        node->queue().push([&] { ++calls; }).wait();
        EXPECT(calls == 1);
    });
    const std::vector<outcome> results = ranks.finish();
    BOOST_TEST(results[0].how == outcome::returned, results[0]);
}

namespace {
/// Forks `times` times while another thread does `busy()` again and again; the children do `act()`, and end soon, with 0.
template <class Busy, class Act>
void forks_beside(int times, const Busy& busy, const Act& act) {
    std::atomic<bool> stop{false};
    std::thread other{[&] {
        while (!stop) busy();
    }};
    bool well = true;
    for (int i = 0; i < times && well; ++i) {
        const ::pid_t child = ::fork();
        if (child == 0) {
            ::alarm(20);
            ::_exit(act());
        }
        int ended = -1;
        well = ::waitpid(child, &ended, 0) == child && ended == 0;
    }
    stop = true;
    other.join();
    EXPECT(well);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_process_made_by_fork_ends_though_a_thread_was_taking_memory) {
    children ranks;
    ranks.start([job = fresh_job()] {
        std::optional<ddl::shared_memory> node{std::in_place, job, 0, 1};
        const auto memory = node->allocator();
        forks_beside(
            1000, [&] { memory.deallocate(memory.allocate(4096), 4096); },
            [&] {
                node.reset();
                return 0;
            });
    });
    const std::vector<outcome> results = ranks.finish();
    BOOST_TEST(results[0].how == outcome::returned, results[0]);
}

BOOST_AUTO_TEST_CASE(a_process_made_by_fork_keeps_no_descriptor_that_is_its_parents_own) {
    children ranks;
    ranks.start([] {
        const auto open = [] { return ddl::descriptor{::open("/dev/zero", O_RDONLY | O_CLOEXEC)}; };
        const auto kept = [] {
            for (int number = 3; number < 64; ++number) {
                const std::string entry = "/proc/self/fd/" + std::to_string(number);
                char file[16] = {};
                if (::readlink(entry.c_str(), file, sizeof file - 1) > 0 && std::string{file} == "/dev/zero") return 1;
            }
            return 0;
        };
        ddl::own_descriptor{open};  // its handlers are there from here on
        forks_beside(
            300, [&] { ddl::own_descriptor{open}; }, kept);
    });
    const std::vector<outcome> results = ranks.finish();
    BOOST_TEST(results[0].how == outcome::returned, results[0]);
}
