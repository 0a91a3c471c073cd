// SPDX-License-Identifier: Apache-2.0
// rows: few
// ranks: 1 2 3
// mpi-ranks: 2 3
// two-nodes: 2
// mpich-two-nodes: none; where three threads call MPI at once, MPICH 4.0.2 over UCX left a message unmatched
#include <atomic>
#include <chrono>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "world.hpp"

namespace {

/// A communicator of its own for a case that breaks it.
struct to_be_broken {
    to_be_broken() { REQUIRE_OK(ddl_split(world(), 0, rank(), &ranks)); }
    ~to_be_broken() { BOOST_TEST(ddl_close(ranks) == DDL_OK); }
    ddl_communicator* ranks = nullptr;
};

void nap(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds}); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_request_waits_for_the_last_rank) {
    float value = 1;
    ddl_communicator* looked = nullptr;  // whose barrier the last rank passes when rank 0 has looked
    REQUIRE_OK(ddl_split(world(), 0, rank(), &looked));
    const bool last = rank() == size() - 1;
    if (last && size() > 1) REQUIRE_OK(ddl_run_barrier(looked));
    ddl_request* request = nullptr;
    REQUIRE_OK(ddl_start_allreduce(world(), &value, &value, 1, DDL_FLOAT, DDL_SUM, &request));
    if (rank() == 0 && size() > 1) {
        int done = 1;
        REQUIRE_OK(ddl_test_request(request, &done));
        BOOST_TEST(done == 0);
        REQUIRE_OK(ddl_wait_request_for(request, 0.01, &done));
        BOOST_TEST(done == 0);
    }
    if (!last) REQUIRE_OK(ddl_run_barrier(looked));
    REQUIRE_OK(ddl_close(looked));
    int done = 0;
    REQUIRE_OK(ddl_wait_request_for(request, 60, &done));
    BOOST_TEST(done == 1);
    BOOST_TEST(value == static_cast<float>(size()));
    REQUIRE_OK(ddl_wait_request(request));  // as often as it is asked
    REQUIRE_OK(ddl_free_request(request));
    expect_failure(DDL_INVALID_ARGUMENT, "test_request: this is no request", ddl_test_request(request, &done));
    expect_failure(DDL_INVALID_ARGUMENT, "free each once", ddl_free_request(request));
}

BOOST_AUTO_TEST_CASE(a_callback_comes_once_with_the_status) {
    struct heard {
        std::atomic<int> times{0};
        std::atomic<ddl_status> status{-1};
    } heard;
    const auto then = [](ddl_status status, const char*, void* context) {
        auto* const to = static_cast<struct heard*>(context);
        to->status = status;
        ++to->times;
    };
    float value = 1;
    ddl_request* request = nullptr;
    REQUIRE_OK(ddl_start_allreduce(world(), &value, &value, 1, DDL_FLOAT, DDL_SUM, &request));
    REQUIRE_OK(ddl_on_completion(request, then, &heard));
    REQUIRE_OK(ddl_wait_request(request));
    REQUIRE_OK(ddl_free_request(request));
    for (int turns = 0; heard.times == 0 && turns < 60'000; ++turns) nap(1);
    BOOST_TEST(heard.times == 1);
    BOOST_TEST(heard.status == DDL_OK);
    expect_failure(DDL_INVALID_ARGUMENT, "no request", ddl_on_completion(request, then, &heard));
}

BOOST_AUTO_TEST_CASE(a_callback_closes_no_communicator) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, 0, &part));
    struct heard {
        ddl_communicator* part;
        std::atomic<ddl_status> status{-1};
    } heard{part};
    const auto then = [](ddl_status, const char*, void* context) {
        auto* const to = static_cast<struct heard*>(context);
        to->status = ddl_close(to->part);
    };
    ddl_request* request = nullptr;
    REQUIRE_OK(ddl_start_barrier(part, &request));
    REQUIRE_OK(ddl_on_completion(request, then, &heard));
    for (int turns = 0; heard.status == -1 && turns < 60'000; ++turns) nap(1);
    BOOST_TEST(heard.status == DDL_INVALID_ARGUMENT);
    REQUIRE_OK(ddl_free_request(request));
    REQUIRE_OK(ddl_run_barrier(part));
    REQUIRE_OK(ddl_close(part));
}

BOOST_AUTO_TEST_CASE(a_descriptor_becomes_readable) {
    ddl_request* request = nullptr;
    REQUIRE_OK(ddl_start_barrier(world(), &request));
    int descriptor = -1;
    REQUIRE_OK(ddl_get_descriptor(request, &descriptor));
    pollfd watched{descriptor, POLLIN, 0};
    BOOST_TEST(::poll(&watched, 1, 60'000) == 1);
    int done = 0;
    REQUIRE_OK(ddl_test_request(request, &done));
    BOOST_TEST(done == 1);
    REQUIRE_OK(ddl_free_request(request));
}

BOOST_AUTO_TEST_CASE(requests_of_one_communicator_are_carried_out_in_order) {
    std::vector<std::int64_t> values(100);
    std::vector<ddl_request*> requests(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<std::int64_t>(i);
        REQUIRE_OK(ddl_start_allreduce(world(), &values[i], &values[i], 1, DDL_INT64, DDL_SUM, &requests[i]));
    }
    std::int64_t last = 7;
    REQUIRE_OK(ddl_run_allreduce(world(), &last, &last, 1, DDL_INT64, DDL_SUM));  // comes after all of them
    BOOST_TEST(last == 7 * size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        int done = 0;
        REQUIRE_OK(ddl_wait_request_for(requests[i], 60, &done));
        BOOST_TEST(values[i] == static_cast<std::int64_t>(i) * size());
        REQUIRE_OK(ddl_free_request(requests[i]));
    }
}

BOOST_FIXTURE_TEST_CASE(a_peer_that_does_not_come_is_a_timeout_on_all_who_wait, to_be_broken) {
    if (size() == 1) return;
    REQUIRE_OK(ddl_set_timeout(ranks, 0.3));
    float value = 1;
    if (rank() != 0) {
        expect_failure(DDL_TIMEOUT, "within 0.3 s", ddl_run_allreduce(ranks, &value, &value, 1, DDL_FLOAT, DDL_SUM));
        expect_failure(DDL_BROKEN, "broken", ddl_run_allreduce(ranks, &value, &value, 1, DDL_FLOAT, DDL_SUM));
    }
    REQUIRE_OK(ddl_run_barrier(world()));
}

BOOST_FIXTURE_TEST_CASE(an_interrupt_ends_a_call_that_waits, to_be_broken) {
    if (size() == 1) return;
    float value = 1;
    if (rank() != 0) {
        std::atomic<bool> over{false};
        std::thread interrupts{[this, &over] {
            for (; !over; nap(50)) ddl_interrupt(ranks);  // the first may come before the call
        }};
        const ddl_status status = ddl_run_allreduce(ranks, &value, &value, 1, DDL_FLOAT, DDL_SUM);
        over = true;
        interrupts.join();
        BOOST_TEST((status == DDL_INTERRUPTED || (size() > 2 && status == DDL_BROKEN)), ddl_last_error());
    }
    REQUIRE_OK(ddl_run_barrier(world()));
    REQUIRE_OK(ddl_interrupt(world()));  // no call is under way: nothing happens
    REQUIRE_OK(ddl_run_barrier(world()));
}

BOOST_FIXTURE_TEST_CASE(an_interrupt_ends_a_split_that_waits, to_be_broken) {
    if (size() == 1) return;
    if (rank() != 0) {
        std::atomic<bool> over{false};
        std::thread interrupts{[this, &over] {
            for (; !over; nap(10)) ddl_interrupt(ranks);
        }};
        ddl_communicator* part = nullptr;
        const ddl_status status = ddl_split(ranks, 0, 0, &part);
        over = true;
        interrupts.join();
        BOOST_TEST((status == DDL_INTERRUPTED || (size() > 2 && status == DDL_BROKEN)), ddl_last_error());
        BOOST_TEST(part == nullptr);
    }
    REQUIRE_OK(ddl_run_barrier(world()));
}

BOOST_AUTO_TEST_CASE(an_interrupt_between_calls_breaks_nothing) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([part, i] {
            for (int time = 0; time < 20'000; ++time) {
                if (i == 0) ddl_set_timeout(part, 100);  // holds what calls hold, and is none
                else ddl_interrupt(part);
            }
        });
    for (std::thread& each : threads) each.join();
    float value = 1;
    REQUIRE_OK(ddl_run_allreduce(part, &value, &value, 1, DDL_FLOAT, DDL_SUM));
    REQUIRE_OK(ddl_close(part));
}

BOOST_FIXTURE_TEST_CASE(peers_of_a_rank_that_gives_up_hear_why, to_be_broken) {
    if (size() == 1) return;
    float value = 1;
    const bool gives_up = rank() == size() - 1;
    if (gives_up) REQUIRE_OK(ddl_abort(ranks, "out of paper"));
    expect_failure(gives_up ? DDL_INTERRUPTED : DDL_BROKEN, gives_up ? "interrupted" : "gave up: out of paper",
                   ddl_run_allreduce(ranks, &value, &value, 1, DDL_FLOAT, DDL_SUM));
    REQUIRE_OK(ddl_run_barrier(world()));
}

BOOST_FIXTURE_TEST_CASE(an_interrupt_ends_a_barrier_that_was_started, to_be_broken) {
    if (rank() == 0 && size() > 1) {
        ddl_request* request = nullptr;
        REQUIRE_OK(ddl_start_barrier(ranks, &request));
        REQUIRE_OK(ddl_interrupt(ranks));
        expect_failure(DDL_INTERRUPTED, "interrupted", ddl_wait_request(request));
        REQUIRE_OK(ddl_free_request(request));
    }
    REQUIRE_OK(ddl_run_barrier(world()));
}

BOOST_AUTO_TEST_CASE(an_interrupt_ends_a_refusal_that_waits) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    if (rank() == 0 && size() > 1) {
        ddl_request* none = nullptr;
        expect_failure(DDL_INVALID_ARGUMENT, "in is NULL",
                       ddl_start_allreduce(part, nullptr, nullptr, 1, DDL_FLOAT, DDL_SUM, &none));
        REQUIRE_OK(ddl_interrupt(part));
        REQUIRE_OK(ddl_close(part));  // would wait for the others, who wait below
    }
    REQUIRE_OK(ddl_run_barrier(world()));
    if (rank() != 0 || size() == 1) REQUIRE_OK(ddl_close(part));
}

BOOST_AUTO_TEST_CASE(a_close_waits_for_what_was_started) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    REQUIRE_OK(ddl_set_options(part, ""));
    if (rank() == size() - 1) nap(50);
    std::vector<float> values(1000, 1.0F);
    ddl_request* requests[2] = {};
    REQUIRE_OK(
        ddl_start_allreduce(part, values.data(), values.data(), values.size(), DDL_FLOAT, DDL_SUM, &requests[0]));
    REQUIRE_OK(ddl_start_barrier(part, &requests[1]));
    REQUIRE_OK(ddl_close(part));
    BOOST_TEST(values[999] == static_cast<float>(size()));
    for (ddl_request* const each : requests) {
        REQUIRE_OK(ddl_wait_request(each));
        REQUIRE_OK(ddl_free_request(each));
    }
}

BOOST_AUTO_TEST_CASE(an_interrupt_ends_a_close_that_waits) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    if (rank() == 0 && size() > 1) {
        REQUIRE_OK(ddl_set_timeout(part, 30));
        ddl_request* request = nullptr;
        REQUIRE_OK(ddl_start_barrier(part, &request));
        std::atomic<bool> begins{false};
        ddl_status closed = -1;
        std::thread closes{[part, &begins, &closed] {
            begins = true;
            closed = ddl_close(part);
        }};
        while (!begins) std::this_thread::yield();
        nap(50);
        REQUIRE_OK(ddl_interrupt(part));
        closes.join();
        BOOST_TEST(closed == DDL_OK);
        expect_failure(DDL_INTERRUPTED, "interrupted", ddl_wait_request(request));
        REQUIRE_OK(ddl_free_request(request));
        expect_failure(DDL_INVALID_ARGUMENT, "no open communicator", ddl_interrupt(part));
    }
    REQUIRE_OK(ddl_run_barrier(world()));
    if (rank() != 0 || size() == 1) REQUIRE_OK(ddl_close(part));
}

BOOST_AUTO_TEST_CASE(threads_may_ask_while_another_closes) {
    const int times = size() == 1 ? 300 : 3;  // ranks meet in each
    std::atomic<ddl_communicator*> open{nullptr};
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&, i] {
            while (!over) {
                ddl_communicator* const part = open;
                void* memory = nullptr;
                if (i == 0) ddl_interrupt(part);
                else if (ddl_allocate(part, 64, &memory) == DDL_OK && ddl_deallocate(memory) != DDL_OK) ++wrong;
                const int node = ddl_get_local_size(part);
                if (node != -1 && node > size()) ++wrong;
                ddl_get_transport(part);
            }
        });
    for (int time = 0; time < times; ++time) {
        ddl_communicator* part = nullptr;
        REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
        open = part;
        REQUIRE_OK(ddl_close(part));
    }
    over = true;
    for (std::thread& each : threads) each.join();
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(threads_may_run_a_plan_or_wait_for_a_request_while_another_frees_it) {
    if (size() != 1) return;  // where nobody waits for who comes too late
    std::vector<float> values(200, 1.0F);
    std::vector<void*> data;
    for (float& each : values) data.push_back(&each);
    const std::vector<std::size_t> counts(values.size(), 1);
    std::atomic<int> wrong{0};
    const auto beside = [&wrong](auto uses, auto frees) {
        std::atomic<int> ready{0};
        const auto meet = [&ready] {
            for (++ready; ready < 2;) std::this_thread::yield();
        };
        std::thread other{[&] {
            meet();
            if (const ddl_status status = uses(); status != DDL_OK && status != DDL_INVALID_ARGUMENT) ++wrong;
        }};
        meet();
        if (frees() != DDL_OK) ++wrong;
        other.join();
    };
    for (int time = 0; time < 1000; ++time) {
        ddl_plan* plan = nullptr;
        REQUIRE_OK(ddl_plan_allreduce_n(world(), data.data(), counts.data(), data.size(), DDL_FLOAT, DDL_SUM, &plan));
        beside([plan] { return ddl_run_plan(plan); }, [plan] { return ddl_free_plan(plan); });
        ddl_request* request = nullptr;
        REQUIRE_OK(
            ddl_start_allreduce(world(), values.data(), values.data(), values.size(), DDL_FLOAT, DDL_SUM, &request));
        beside([request] { return ddl_wait_request(request); }, [request] { return ddl_free_request(request); });
    }
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(threads_may_call_side_by_side_on_communicators_of_their_own) {
    std::vector<ddl_communicator*> parts(3);
    for (auto& each : parts) REQUIRE_OK(ddl_split(world(), 0, rank(), &each));
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (ddl_communicator* const each : parts)
        threads.emplace_back([&right, each] {
            for (int time = 0; time < 50; ++time) {
                std::vector<float> values(300, 1.0F);
                if (ddl_run_allreduce(each, values.data(), values.data(), values.size(), DDL_FLOAT, DDL_SUM) ==
                        DDL_OK &&
                    values.back() == static_cast<float>(size()))
                    ++right;
            }
        });
    for (std::thread& each : threads) each.join();
    BOOST_TEST(right == 150);
    for (ddl_communicator* const each : parts) REQUIRE_OK(ddl_close(each));
}

BOOST_AUTO_TEST_CASE(a_process_made_by_fork_leaves_the_ranks_to_its_parent) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    float value = 1;
    ddl_plan* plan = nullptr;
    REQUIRE_OK(ddl_plan_allreduce(world(), &value, &value, 1, DDL_FLOAT, DDL_MAXIMUM, &plan));
    if (rank() != 0) REQUIRE_OK(ddl_run_barrier(world()));  // rank 0 has forked
    float sum = 1;
    ddl_request* request = nullptr;
    REQUIRE_OK(ddl_start_allreduce(part, &sum, &sum, 1, DDL_FLOAT, DDL_SUM, &request));
    if (rank() == 0) {
        const ::pid_t child = ::fork();
        if (child == 0) {
            ::alarm(60);
            int wrong = 0;
            const auto expect = [&](bool holds, int bit) { wrong |= holds ? 0 : 1 << bit; };
            const auto is_refused = [](ddl_status status) {
                return status == DDL_BROKEN && std::string{ddl_last_error()}.find("made by fork") != std::string::npos;
            };
            expect(is_refused(ddl_run_barrier(world())), 0);
            expect(is_refused(ddl_run_plan(plan)), 1);
            expect(size() == 1 || is_refused(ddl_wait_request(request)), 2);
            expect(is_refused(ddl_interrupt(part)), 3);
            expect(ddl_get_rank(world()) == 0, 4);
            expect(ddl_close(part) == DDL_OK && ddl_close(world()) == DDL_OK, 5);
            expect(ddl_get_rank(world()) == -1, 6);
            ::_exit(wrong);
        }
        int ended = -1;
        BOOST_TEST_REQUIRE(::waitpid(child, &ended, 0) == child);
        BOOST_TEST(ended == 0, "the child ends with " << ended);
        REQUIRE_OK(ddl_run_barrier(world()));
    }
    REQUIRE_OK(ddl_wait_request(request));
    REQUIRE_OK(ddl_free_request(request));
    BOOST_TEST(sum == static_cast<float>(size()));
    REQUIRE_OK(ddl_run_plan(plan));
    REQUIRE_OK(ddl_free_plan(plan));
    REQUIRE_OK(ddl_close(part));
}

BOOST_AUTO_TEST_CASE(it_frees_requests_whatever_other_threads_did_when_it_was_made) {
    if (size() != 1) return;
    ddl_request* finished = nullptr;
    REQUIRE_OK(ddl_start_barrier(world(), &finished));
    REQUIRE_OK(ddl_wait_request(finished));
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] {
            for (ddl_request* request = nullptr; !over; ddl_free_request(request)) ddl_start_barrier(world(), &request);
        });
    int ended = 0;
    for (int time = 0; time < 100 && ended == 0; ++time) {
        const ::pid_t child = ::fork();
        if (child == 0) {
            ::alarm(20);
            ::_exit(ddl_free_request(finished));
        }
        BOOST_TEST_REQUIRE(::waitpid(child, &ended, 0) == child);
    }
    over = true;
    for (std::thread& each : threads) each.join();
    BOOST_TEST(ended == 0, "a child ends with " << ended);
    REQUIRE_OK(ddl_free_request(finished));
}
