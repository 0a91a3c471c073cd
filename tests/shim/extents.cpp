// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/proof.hpp>
#include <ddl/shim/extents.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

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
