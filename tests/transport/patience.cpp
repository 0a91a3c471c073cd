// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/patience.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <clocale>
#include <concepts>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "../collective/require.hpp"

using ddl::patience;
using ddl::timeout;
using namespace std::chrono_literals;

static_assert(timeout{}.seconds == 600, "ten minutes, if nobody says otherwise");
static_assert(timeout{2.5}.seconds == 2.5 && timeout{1500ms}.seconds == 1.5 && timeout{2min}.seconds == 120);

static_assert(std::convertible_to<std::chrono::minutes, timeout>, "it says its unit");
static_assert(!std::convertible_to<double, timeout>, "a bare number does not");

BOOST_AUTO_TEST_CASE(a_timeout_is_a_number_and_not_negative) {
    BOOST_TEST(timeout{0}.seconds == 0);
    for (const double wrong : {-5.0, std::numeric_limits<double>::quiet_NaN()}) {
        const auto failure = error_of([&] { timeout{wrong}; });
        BOOST_TEST((failure.code() == ddl::errc::invalid_argument));
        BOOST_TEST(std::string(failure.what()).find("pass 0 or more") != std::string::npos, failure.what());
    }
    BOOST_CHECK_THROW(timeout{-1s}, ddl::error);
}

BOOST_AUTO_TEST_CASE(a_thread_that_is_cancelled_stays_until_its_wait_ends) {  // peers use what it would unwind
    bool has_stayed = false;
    std::thread rank([&] {
        patience waiting{timeout{50ms}};
        while (!waiting.pause() || !waiting.expired()) {}
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        has_stayed = true;
    });
    ::pthread_cancel(rank.native_handle());
    rank.join();
    BOOST_TEST(has_stayed);
}

BOOST_AUTO_TEST_CASE(a_wait_ends_after_its_limit_and_not_before) {
    const double start = ddl::now();
    patience waiting{timeout{50ms}};
    while (!(waiting.pause() && waiting.expired())) {}
    BOOST_TEST(ddl::now() - start >= 0.05);
    BOOST_TEST(ddl::now() - start < 20.0);
    BOOST_TEST(waiting.limit() == 0.05);
}

BOOST_AUTO_TEST_CASE(who_waited_for_too_long_looks_once_more) {
    patience waiting{timeout{0.01}};
    BOOST_TEST(!waiting.expired());
    std::this_thread::sleep_for(30ms);  // as one that was stopped, while what it waits for came
    BOOST_TEST(!waiting.expired());
    BOOST_TEST(waiting.expired());
    patience never{timeout{0}};
    BOOST_TEST(!never.expired());
    std::this_thread::sleep_for(1ms);
    BOOST_TEST(!never.expired());
    BOOST_TEST(never.expired());
}

BOOST_AUTO_TEST_CASE(who_was_stopped_for_long_has_not_waited_for_all_of_that_time) {
    patience waiting{timeout{1.5}};
    BOOST_TEST(!waiting.expired());
    std::this_thread::sleep_for(2s);
    BOOST_TEST(!waiting.expired());
    BOOST_TEST(!waiting.expired());
    while (!waiting.expired()) std::this_thread::sleep_for(1ms);
}

BOOST_AUTO_TEST_CASE(time_counts_from_the_first_question) {
    patience waiting{timeout{600.0}};
    BOOST_TEST(!waiting.expired());
}

BOOST_AUTO_TEST_CASE(it_seldom_asks_to_look_around) {
    patience waiting{timeout{600.0}};
    int asked = 0;
    for (int i = 0; i < 2000; ++i) asked += waiting.pause() ? 1 : 0;
    BOOST_TEST(asked > 0);
    BOOST_TEST(asked < 100, "looking around costs more than a turn");
}

BOOST_AUTO_TEST_CASE(the_clock_goes_forward) {
    const double first = ddl::now();
    BOOST_TEST(ddl::now() >= first);
}

BOOST_AUTO_TEST_CASE(the_environment_may_set_the_limit) {
    ::unsetenv("DDL_TIMEOUT");
    BOOST_TEST(ddl::timeout_from_environment().seconds == 600);
    ::setenv("DDL_TIMEOUT", "2.5", 1);
    BOOST_TEST(ddl::timeout_from_environment().seconds == 2.5);
    ::setenv("DDL_TIMEOUT", "", 1);
    BOOST_TEST(ddl::timeout_from_environment().seconds == 600, "an empty one is none");
    for (const char* const wrong : {"soon", "3x", "0", "-1"}) {
        ::setenv("DDL_TIMEOUT", wrong, 1);
        const auto failure = error_of([] { ddl::timeout_from_environment(); });
        BOOST_TEST((failure.code() == ddl::errc::invalid_argument));
        BOOST_TEST(std::string(failure.what()).find(wrong) != std::string::npos, failure.what());
    }
    ::unsetenv("DDL_TIMEOUT");
}

BOOST_AUTO_TEST_CASE(and_says_the_same_where_numbers_have_a_comma) {
    const auto folder = std::filesystem::temp_directory_path() / ("ddl-patience-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::ofstream{folder / "words"}
        << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n";
    const std::string make = "cd '" + folder.string() + "' && localedef -c -i words ./with_comma >/dev/null 2>&1";
    (void)!std::system(make.c_str());  // NOLINT: it warns of what is not in there
    ::setenv("LOCPATH", folder.c_str(), 1);
    if (std::setlocale(LC_NUMERIC, "with_comma") != nullptr) {
        BOOST_TEST(std::strtod("2,5", nullptr) == 2.5);
        ::setenv("DDL_TIMEOUT", "2.5", 1);
        BOOST_TEST(ddl::timeout_from_environment().seconds == 2.5);
        ::setenv("DDL_TIMEOUT", "2,5", 1);
        BOOST_CHECK_THROW(ddl::timeout_from_environment(), ddl::error);
        ::unsetenv("DDL_TIMEOUT");
        std::setlocale(LC_NUMERIC, "C");
    } else {
        BOOST_TEST_MESSAGE("no locale can be made here");
    }
    ::unsetenv("LOCPATH");
    std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(a_thread_that_may_run_on_one_core_alone_is_bound_to_it) {
    cpu_set_t before;
    BOOST_REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
    BOOST_TEST((ddl::bound_core() < 0) == (CPU_COUNT(&before) > 1));
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &before)) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        BOOST_REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
        BOOST_TEST(ddl::bound_core() == static_cast<int>(core));
    }
    BOOST_REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}
