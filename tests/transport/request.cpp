// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/request.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

using ddl::request;

static_assert(std::is_copy_constructible_v<request> && std::is_default_constructible_v<request>);

namespace {
bool readable(const request& one) {
    pollfd ready{one.descriptor(), POLLIN, 0};
    return ::poll(&ready, 1, 0) == 1;
}
const auto failure = std::make_exception_ptr(std::domain_error("it failed"));
}  // namespace

BOOST_AUTO_TEST_CASE(a_request_of_nothing_is_done) {
    const request none;
    BOOST_TEST(none.test());
    none.wait();
    BOOST_TEST(readable(none));
}

BOOST_AUTO_TEST_CASE(it_is_done_when_it_is_finished) {
    const request one = request::pending();
    BOOST_TEST(!one.test());
    one.finish(nullptr);
    BOOST_TEST(one.test());
    BOOST_TEST(one.test(), "and stays so");
    one.wait();
}

BOOST_AUTO_TEST_CASE(copies_are_the_same_call) {
    const request one = request::pending();
    const request other = one;
    one.finish(nullptr);
    BOOST_TEST(other.test());
}

BOOST_AUTO_TEST_CASE(a_request_that_was_moved_from_is_the_same_call) {
    request one = request::pending();
    const request other = std::move(one);
    BOOST_TEST(!one.test());
    request third;
    third = std::move(one);
    other.finish(nullptr);
    one.wait();
    BOOST_TEST(third.test());
}

BOOST_AUTO_TEST_CASE(a_failure_is_thrown_each_time_somebody_asks) {
    const request one = request::pending();
    one.finish(failure);
    BOOST_CHECK_THROW(one.test(), std::domain_error);
    BOOST_CHECK_THROW(one.wait(), std::domain_error);
    BOOST_CHECK_THROW(one.wait(), std::domain_error);
}

BOOST_AUTO_TEST_CASE(who_finishes_it_may_let_go_of_it_after_the_failure_was_read) {
    request one = request::pending();
    std::thread finishes{[mine = one]() mutable {
        mine.finish(std::make_exception_ptr(std::domain_error("it failed")));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        mine = request();
    }};
    try {
        const request waited = std::exchange(one, request());
        waited.wait();
        BOOST_ERROR("it did not fail");
    } catch (const std::domain_error& thrown) { BOOST_TEST(thrown.what() == std::string("it failed")); }
    finishes.join();
}

BOOST_AUTO_TEST_CASE(several_threads_may_wait) {
    const request one = request::pending();
    std::thread first{[one] { one.wait(); }};
    std::thread second{[one] { one.wait(); }};
    one.finish(nullptr);
    first.join();
    second.join();
}

BOOST_AUTO_TEST_CASE(a_descriptor_asked_for_before_or_after_is_readable_once_it_is_done) {
    const request early = request::pending();
    BOOST_TEST(!readable(early));
    early.finish(nullptr);
    BOOST_TEST(readable(early));
    BOOST_TEST(readable(early), "and stays so");
    const request late = request::pending();
    late.finish(failure);
    BOOST_TEST(readable(late), "a failure is an end too");
    BOOST_TEST(late.descriptor() == late.descriptor(), "it has one");
}

BOOST_AUTO_TEST_CASE(a_function_is_called_once_with_the_outcome) {
    int well = 0;
    int badly = 0;
    const auto count = [&](std::exception_ptr outcome) { ++(outcome ? badly : well); };
    const request good = request::pending();
    good.on_completion(count);
    BOOST_TEST(well == 0);
    good.finish(nullptr);
    BOOST_TEST(well == 1);
    const request bad = request::pending();
    bad.finish(failure);
    bad.on_completion(count);
    BOOST_TEST(badly == 1, "it is over: at once");
    BOOST_TEST(well == 1);
}

BOOST_AUTO_TEST_CASE(whoever_holds_a_copy_may_ask_to_be_called) {
    std::string calls;
    const request one = request::pending();
    const request other = one;
    one.on_completion([&](std::exception_ptr outcome) { calls += outcome ? "first failed" : "first"; });
    other.on_completion([&](std::exception_ptr outcome) { calls += outcome ? ", second failed" : ", second"; });
    one.finish(failure);
    BOOST_TEST(calls == "first failed, second failed");
}
