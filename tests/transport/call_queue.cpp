// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/call_queue.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using ddl::call_queue;

namespace {
// Of one rank, which has a core to spare here, and of more than there are cores.
constexpr int few = 1;
constexpr int many = 10'000;

/// Whether this thread, which pushes a call and at once does what `then(queue, request)` does, carries one out. It may be too
/// late for some.
template <class Then>
bool carries_out(call_queue& queue, Then then) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
        std::thread::id who;
        const auto done = queue.push([&] { who = std::this_thread::get_id(); });
        then(queue, done);
        if (who == std::this_thread::get_id()) return true;
    }
    return false;
}

/// How a process ends in which `body(queue)` runs, and the queue is one that goes with the process.
template <class Body>
int status_of_process(Body body) {
    std::cout.flush();  // which both would write
    const pid_t child = ::fork();
    if (child == 0) {
        for (const int signal : {SIGALRM, SIGABRT}) std::signal(signal, SIG_DFL);
        ::alarm(60);
        static call_queue queue;
        body(queue);
        ::_exit(1);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}
bool has_exited_with(int status, int expected) { return WIFEXITED(status) && WEXITSTATUS(status) == expected; }
}  // namespace

BOOST_AUTO_TEST_CASE(calls_are_carried_out_in_their_order_whoever_does_so) {
    for (const int ranks : {few, many}) {
        call_queue queue{true, ranks};
        std::vector<int> order;  // without a lock, for a thread sanitizer to see
        std::vector<ddl::request> requests;
        std::vector<std::thread> waiting;
        for (int i = 0; i < 300; ++i) {
            requests.push_back(queue.push([&order, i] { order.push_back(i); }));
            if (i % 7 == 0) waiting.emplace_back([last = requests.back()] { last.wait(); });
            if (i % 11 == 0) requests[static_cast<std::size_t>(i / 2)].wait();
            if (i % 13 == 0) requests.back().test();
            if (i % 50 == 0) queue.drain();
        }
        queue.drain();
        for (int i = 0; i < 300; ++i) BOOST_TEST(order[static_cast<std::size_t>(i)] == i);
        for (std::thread& each : waiting) each.join();
    }
}

BOOST_AUTO_TEST_CASE(who_waits_carries_out_what_nobody_has_begun) {
    for (const int ranks : {few, many}) {
        call_queue queue{true, ranks};
        BOOST_TEST(carries_out(queue, [](call_queue&, const ddl::request& done) { done.wait(); }));
        BOOST_TEST(carries_out(queue, [](call_queue& all, const ddl::request&) { all.drain(); }));
        BOOST_TEST(!call_queue::is_its_thread());
    }
}

BOOST_AUTO_TEST_CASE(its_thread_leaves_signals_of_the_process_to_others) {
    call_queue queue;
    sigset_t there{};
    std::atomic<bool> seen = false;
    queue.push([&] { seen = ::pthread_sigmask(SIG_SETMASK, nullptr, &there) == 0; }, [] { return true; }).wait();
    BOOST_TEST(seen);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD})
        BOOST_TEST(::sigismember(&there, signal) == 1, "signal " << signal);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE}) BOOST_TEST(::sigismember(&there, fault) == 0, "signal " << fault);
    sigset_t here;
    BOOST_REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &here) == 0);
    BOOST_TEST(::sigismember(&here, SIGTERM) == 0);
}

BOOST_AUTO_TEST_CASE(nobody_needs_to_wait) {
    for (const int ranks : {few, many}) {
        call_queue queue{true, ranks};
        std::atomic<int> calls = 0;
        for (int i = 0; i < 3; ++i) {
            queue.push([&] { ++calls; }).wait();  // from now on the queue's thread expects somebody to wait
            const auto first = queue.push([&] { ++calls; });
            queue.push([&] { ++calls; });
            if (i == 1) first.wait();
            if (i == 2) queue.push([&] { ++calls; }).descriptor();
            while (calls < 3 * i + 3 + i / 2) std::this_thread::yield();
        }
    }
}

BOOST_AUTO_TEST_CASE(what_comes_behind_a_long_call_of_one_who_waits_is_not_left) {
    for (const int ranks : {few, many}) {
        call_queue queue{true, ranks};
        queue.push([] {}).wait();
        const auto long_one = queue.push([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
        std::atomic<bool> done = false;
        queue.push([&] { done = true; });
        long_one.wait();
        while (!done) std::this_thread::yield();
    }
}

BOOST_AUTO_TEST_CASE(whoever_is_called_back_is_not_so_by_a_thread_that_waits) {
    call_queue queue{true, many};
    for (int attempt = 0; attempt < 100; ++attempt) {
        queue.push([] {}).wait();  // the queue's thread leaves the next one, too
        std::atomic<std::thread::id> who{};
        const auto done = queue.push([] {});
        done.on_completion([&](std::exception_ptr) { who = std::this_thread::get_id(); });
        if (who.load() == std::this_thread::get_id()) continue;  // at once: it was done
        done.wait();
        while (who.load() == std::thread::id{}) std::this_thread::yield();
        BOOST_TEST((who.load() != std::this_thread::get_id()));
    }
}

BOOST_AUTO_TEST_CASE(a_queue_ends_behind_what_a_thread_that_waits_carries_out) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        std::optional<call_queue> queue{std::in_place, true, many};
        queue->push([] {}).wait();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // until the queue's thread has found nothing left
        std::atomic<bool> began = false;
        bool ended = false;
        const auto only = queue->push([&] {
            began = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            ended = true;
        });
        std::thread waiting{[&only] { only.wait(); }};
        while (!began) std::this_thread::yield();
        queue.reset();
        BOOST_TEST(ended);
        waiting.join();
    }
}

BOOST_AUTO_TEST_CASE(an_exception_belongs_to_its_request_alone) {
    call_queue queue;
    const auto bad = queue.push([] { throw std::domain_error("no"); });
    const auto good = queue.push([] {});
    queue.drain();
    BOOST_TEST(good.test());
    BOOST_CHECK_THROW(bad.wait(), std::domain_error);
}

BOOST_AUTO_TEST_CASE(a_drained_queue_takes_more) {
    call_queue queue;
    int calls = 0;
    queue.drain();  // of nothing
    for (int i = 0; i < 3; ++i) {
        queue.push([&] { ++calls; });
        queue.drain();
        BOOST_TEST(calls == i + 1);
    }
}

BOOST_AUTO_TEST_CASE(a_call_that_drains_its_own_queue_does_not_wait_for_itself) {
    call_queue queue;
    bool done = false;
    queue.push([&] {
        queue.drain();
        done = true;
    });
    queue.drain();
    BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(a_call_may_drain_another_queue) {
    call_queue inner;
    call_queue outer;
    int calls = 0;
    outer.push([&] {
        inner.push([&] { ++calls; });
        inner.drain();
        ++calls;
    });
    outer.drain();
    BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(all_queues_are_drained_but_the_one_in_a_call_of_which_that_is_asked) {
    call_queue one;
    call_queue other;
    bool called = false;
    const auto asked = one.push([&] {
        const auto done = other.push([&] { called = true; });
        call_queue::drain_all();
        BOOST_TEST(done.is_over());
    });
    const auto last = one.push([] {});
    asked.wait();
    BOOST_TEST(called);
    call_queue::drain_all();
    BOOST_TEST(last.is_over());
}

BOOST_AUTO_TEST_CASE(what_is_left_is_carried_out_before_the_queue_goes) {
    int calls = 0;
    ddl::request last;
    {
        call_queue queue;
        for (int i = 0; i < 50; ++i) last = queue.push([&] { ++calls; });
    }
    BOOST_TEST(calls == 50);
    BOOST_TEST(last.test(), "its requests stay");
}

BOOST_AUTO_TEST_CASE(without_a_thread_calls_are_carried_out_at_once) {
    call_queue queue{false};
    std::optional<std::thread::id> who;
    const auto done = queue.push([&] { who = std::this_thread::get_id(); });
    BOOST_TEST((who == std::this_thread::get_id()));
    BOOST_TEST(done.test());
    const auto failed = queue.push([] { throw std::domain_error("no"); });
    BOOST_CHECK_THROW(failed.wait(), std::domain_error);
    queue.drain();
}

BOOST_AUTO_TEST_CASE(so_are_they_while_the_system_has_no_thread_to_give) {
    call_queue queue;
    std::thread::id who;
    pthread_attr_t usual{}, vast{};
    BOOST_REQUIRE(::pthread_getattr_default_np(&usual) == 0);
    BOOST_REQUIRE(::pthread_getattr_default_np(&vast) == 0);
    BOOST_REQUIRE(::pthread_attr_setstacksize(&vast, std::size_t{1} << 60) == 0);
    BOOST_REQUIRE(::pthread_setattr_default_np(&vast) == 0);
    std::optional<ddl::request> done;
    try {
        done = queue.push([&] { who = std::this_thread::get_id(); });
    } catch (const std::exception& failure) { BOOST_ERROR(failure.what()); }
    BOOST_REQUIRE(::pthread_setattr_default_np(&usual) == 0);
    BOOST_REQUIRE(done.has_value());
    BOOST_TEST((who == std::this_thread::get_id()));
    BOOST_TEST(done->test());
    const auto next = queue.push([&] { who = std::this_thread::get_id(); }, [] { return true; });
    next.wait();
    BOOST_TEST((who != std::this_thread::get_id()), "as soon as it has one");
}

BOOST_AUTO_TEST_CASE(what_a_call_holds_is_let_go_of_when_it_is_done) {
    call_queue queue;
    auto held = std::make_shared<int>();
    const auto done = queue.push([held] {});
    queue.drain();
    BOOST_TEST(held.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_request_is_done_when_what_its_call_set_going_has_ended) {
    call_queue queue;
    std::atomic<bool> gate = false;
    std::atomic<int> looks = 0;
    std::thread::id who;
    const auto first = queue.push([&who] { who = std::this_thread::get_id(); },
                                  [&] {
                                      ++looks;
                                      return gate.load();
                                  });
    std::atomic<bool> called = false;
    const auto second = queue.push([&] { called = true; });
    queue.drain();
    BOOST_TEST(called, "the next call does not wait");
    second.wait();
    while (looks < 3) std::this_thread::yield();
    BOOST_TEST(!first.test());
    gate = true;
    first.wait();
    BOOST_TEST((who != std::this_thread::get_id()), "who waits does not set it going");
}

BOOST_AUTO_TEST_CASE(what_a_call_set_going_may_fail) {
    call_queue queue;
    const auto later = queue.push([] {}, []() -> bool { throw std::domain_error("late"); });
    const auto at_once = queue.push([] { throw std::range_error("early"); }, []() -> bool { return false; });
    BOOST_CHECK_THROW(later.wait(), std::domain_error);
    BOOST_CHECK_THROW(at_once.wait(), std::range_error);
}

BOOST_AUTO_TEST_CASE(a_queue_that_ends_waits_for_what_was_set_going) {
    for (const bool may_use_thread : {true, false}) {
        int looks = 0;
        ddl::request last;
        {
            call_queue queue{may_use_thread};
            last = queue.push([] {}, [&] { return ++looks == 5; });
        }
        BOOST_TEST(looks == 5);
        BOOST_TEST(last.test());
    }
}

BOOST_AUTO_TEST_CASE(a_call_may_end_the_process_whoever_carries_it_out) {
    const int by_thread = status_of_process([](call_queue& queue) {
        queue.push([] { std::exit(3); });
        ::pause();
    });
    BOOST_TEST(has_exited_with(by_thread, 3));
    const int by_who_waits = status_of_process([](call_queue& queue) {
        for (int attempt = 0; attempt < 1000; ++attempt)
            queue
                .push([waits = std::this_thread::get_id()] {
                    if (std::this_thread::get_id() == waits) std::exit(3);
                })
                .wait();
    });
    BOOST_TEST(has_exited_with(by_who_waits, 3));
}

BOOST_AUTO_TEST_CASE(so_may_who_is_called_back) {
    const int status = status_of_process([](call_queue& queue) {
        std::atomic<bool> gate = false;
        const auto done = queue.push([&] { gate.wait(false); });
        done.on_completion([](const std::exception_ptr&) { std::exit(3); });
        gate = true;
        gate.notify_one();
        ::pause();
    });
    BOOST_TEST(has_exited_with(status, 3));
}
