// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/launch_order.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {
constexpr ddl::timeout soon{0.01};
constexpr ddl::timeout patient{20};
}  // namespace

BOOST_AUTO_TEST_CASE(a_turn_ends_when_all_members_have_launched_equally_often) {
    ddl::launch_order order;
    ddl::launch_order::turns first{2, order};
    ddl::launch_order::turns second{2, order};
    BOOST_TEST(first.enter(soon));
    BOOST_TEST(!second.enter(soon));
    first.leave(0);
    BOOST_TEST(first.enter(soon), "a member may launch more before the others have launched once");
    BOOST_TEST(first.enter(soon));
    first.leave(1);  // as often as the other, who is at its next launch
    BOOST_TEST(!second.enter(soon));
    first.leave(0);
    BOOST_TEST(!second.enter(soon));
    BOOST_TEST(first.enter(soon));
    first.leave(1);
    BOOST_TEST(second.enter(soon));
    BOOST_TEST(!first.enter(soon));
}

BOOST_AUTO_TEST_CASE(a_group_that_fails_or_goes_gives_its_turn_away) {
    ddl::launch_order order;
    ddl::launch_order::turns waiting{1, order};
    {
        ddl::launch_order::turns goes{2, order};
        BOOST_TEST(goes.enter(soon));
    }
    BOOST_TEST(waiting.enter(soon));
    waiting.leave(0);
    ddl::launch_order::turns fails{2, order};
    BOOST_TEST(fails.enter(soon));
    fails.abandon();
    BOOST_TEST(waiting.enter(soon));
    fails.abandon();  // of a turn that is another's nothing is given away
    ddl::launch_order::turns other{1, order};
    BOOST_TEST(!other.enter(soon));
    waiting.leave(0);
    BOOST_TEST(!fails.enter(patient), "what is left of a group that has failed takes no turn");
    BOOST_TEST(fails.is_abandoned());
    BOOST_TEST(other.enter(soon));
}

BOOST_AUTO_TEST_CASE(two_groups_launch_in_one_order_on_both_devices) {
    constexpr int launches = 300;
    ddl::launch_order order;
    std::array groups{ddl::launch_order::turns{2, order}, ddl::launch_order::turns{2, order}};
    std::array<std::vector<int>, 2> devices;  // which group launched, one after the other: written by who has the turn
    std::vector<std::thread> members;
    for (int group = 0; group < 2; ++group)
        for (int device = 0; device < 2; ++device)
            members.emplace_back([&, group, device] {
                auto& turns = groups[static_cast<std::size_t>(group)];
                for (int i = 0; i < launches; ++i) {
                    if (!turns.enter(patient)) return;
                    devices[static_cast<std::size_t>(device)].push_back(group);
                    turns.leave(device);
                }
            });
    for (std::thread& each : members) each.join();
    BOOST_TEST(devices[0].size() == 2U * launches);
    BOOST_TEST(devices[0] == devices[1]);
}

BOOST_AUTO_TEST_CASE(a_process_may_end_while_a_thread_waits_for_a_turn) {
    std::cout.flush();  // which both would write
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGALRM, SIG_DFL);
        ::alarm(60);
        static auto& first = *new ddl::launch_order::turns{1};
        static auto& second = *new ddl::launch_order::turns{1};
        if (!first.enter(patient)) ::_exit(1);
        std::thread{[] { (void)second.enter(ddl::timeout{600}); }}.detach();
        ::usleep(200'000);  // so that it waits by now
        std::exit(3);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 3));
}
