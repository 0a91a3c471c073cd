// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/proof.hpp>
#include <ddl/shim/extents.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace data = boost::unit_test::data;
namespace shim = ddl::shim;

namespace {

constexpr int machines[][shim::by_extents::levels] = {{1, 1, 1, 1}, {4, 1, 1, 1}, {1, 4, 1, 1}, {4, 2, 3, 1},
                                                      {2, 2, 2, 2}, {3, 1, 2, 1}, {6, 4, 1, 1}, {1, 1, 1, 5}};

template <class Schedule>
void expect_proof(int ranks) {
    BOOST_TEST(static_cast<bool>(ddl::prove_allreduce(ddl::allreduce_program<Schedule>(ddl::shape{ranks}))));
}

}  // namespace

BOOST_DATA_TEST_CASE(every_mode_is_an_allreduce_of_its_extents, data::xrange(std::size(machines)), index) {
    const auto& extents = machines[index];
    const int ranks = extents[0] * extents[1] * extents[2] * extents[3];
    shim::by_extents::use(extents);
    expect_proof<shim::enhanced>(ranks);
    expect_proof<shim::rings>(ranks);
    expect_proof<shim::halvings>(ranks);
}

BOOST_AUTO_TEST_CASE(another_group_than_that_of_the_extents_is_one_level) {
    constexpr int extents[] = {4, 2, 3, 1};
    shim::by_extents::use(extents);
    for (const int ranks : {1, 2, 5, 7, 12, 25}) {
        expect_proof<shim::enhanced>(ranks);
        BOOST_TEST(shim::by_extents::of(ranks, 0).largest_group() == ranks);
    }
    BOOST_TEST(shim::by_extents::of(24, 0).largest_group() == 4);
    BOOST_TEST(shim::by_extents::of(6, 1).largest_group() == 2);  // across the innermost groups
}

BOOST_DATA_TEST_CASE(on_nodes_the_outer_levels_are_those_of_the_extents, data::xrange(std::size(machines)), index) {
    const auto& extents = machines[index];
    shim::by_extents::use(extents);
    const ddl::shape nodes{extents[0], extents[1] * extents[2] * extents[3]};
    BOOST_TEST(static_cast<bool>(ddl::prove_allreduce(shim::enhanced_on_nodes::allreduce(nodes))));
    BOOST_TEST(static_cast<bool>(ddl::prove_allreduce(shim::halvings_on_nodes::allreduce(nodes))));
}

BOOST_AUTO_TEST_CASE(a_clock_is_told_the_level_of_each_round) {
    constexpr int extents[] = {2, 1, 3, 1};
    const auto levels_of = [](const auto& program, int rank, const shim::level_clock& clock) {
        std::string levels;
        for (int round = 0; round < program.rounds(); ++round) {
            levels += clock.level() < 0 ? '-' : static_cast<char>('0' + clock.level());
            (void)program.width(rank, round);
            levels += static_cast<char>('0' + clock.level());
        }
        return levels;
    };
    shim::level_clock clock;
    shim::by_extents::use(extents, &clock);
    for (int rank = 0; rank < 6; ++rank)
        BOOST_TEST(levels_of(shim::rings::allreduce(ddl::shape{6}), rank, clock) == "-0-2-2-2-2-0");
    BOOST_TEST(clock.level() == -1);
    BOOST_TEST((clock.seconds(0) > 0 && clock.seconds(1) == 0 && clock.seconds(2) > 0));
    // across nodes the time between the rounds is that of the memory of the node
    BOOST_TEST(levels_of(shim::in_extents<ddl::ring, ddl::ring, 1>::allreduce(ddl::shape{3}), 1, clock) == "02020202");
    BOOST_TEST(clock.level() == 0);
    shim::by_extents::use(extents);
    BOOST_TEST(levels_of(shim::rings::allreduce(ddl::shape{6}), 0, clock) == "000000000000");  // nobody asks
}
