// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/fault_record.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <thread>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_CASE(the_first_fault_counts) {
    ddl::fault_record group;
    BOOST_TEST(!group.is_taken());
    BOOST_TEST(group.known() == nullptr);
    BOOST_TEST(group.record({ddl::errc::timeout, "one"}));
    BOOST_TEST(!group.record({ddl::errc::peer_lost, "two"}));
    const ddl::fault_record moved{group};
    for (const ddl::fault_record* each : {&std::as_const(group), &moved}) {
        BOOST_TEST(each->is_taken());
        BOOST_REQUIRE(each->known() != nullptr);
        BOOST_TEST((each->known()->code == ddl::errc::timeout));
        BOOST_TEST(std::string{each->known()->words} == "one");
    }
}

BOOST_AUTO_TEST_CASE(who_sees_one_sees_it_whole) {
    for (int round = 0; round < 200; ++round) {
        ddl::fault_record group;
        std::vector<char> won(3), whole(3);
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < won.size(); ++rank)
            threads.emplace_back([&, rank] {
                const std::string words(100, static_cast<char>('a' + rank));
                won[rank] = group.record({ddl::errc::timeout, words.c_str()});
                while (group.known() == nullptr) std::this_thread::yield();
                const std::string seen = group.known()->words;
                whole[rank] = seen == std::string(100, seen[0]);
            });
        for (std::thread& each : threads) each.join();
        BOOST_TEST(won[0] + won[1] + won[2] == 1);
        BOOST_TEST(whole[0] + whole[1] + whole[2] == 3);
    }
}
