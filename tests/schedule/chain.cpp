// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/chain.hpp>
#include <ddl/schedule/proof.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::chain;
using ddl::operand_order;

static_assert(ddl::proves_allreduce<chain<4>>(1), "one rank has nothing to do, and that is an allreduce");
static_assert(ddl::proves_allreduce<chain<1>>(5) && ddl::proves_allreduce<chain<4>>(2));
static_assert(ddl::proves_broadcast<chain<4>>(6, 4) && ddl::proves_reduce<chain<4>>(6, 4));
static_assert(ddl::keeps_rank_order<chain<3>>);
static_assert(!ddl::has_halves<chain<3>> && !ddl::gathers<chain<3>> && !ddl::exchanges<chain<3>>);
static_assert(ddl::broadcasts<chain<3>> && ddl::reduces<chain<3>>);

BOOST_DATA_TEST_CASE(it_is_every_collective_that_it_offers, data::xrange(1, 20), size) {
    for (const int root : {0, size / 2, size - 1}) {
        BOOST_TEST(ddl::proves_broadcast<chain<1>>(size, root), "from " << root);
        BOOST_TEST(ddl::proves_broadcast<chain<5>>(size, root), "from " << root);
        BOOST_TEST(ddl::proves_reduce<chain<1>>(size, root), "to " << root);
        BOOST_TEST(ddl::proves_reduce<chain<5>>(size, root), "to " << root);
    }
    BOOST_TEST(ddl::proves_allreduce<chain<5>>(size));
    BOOST_TEST(ddl::proves_rank_order<chain<5>>(size));
    BOOST_TEST(bool(ddl::prove_reduce<operand_order::ranks>(chain<5>::reduce(size, 0), 0)));
}

BOOST_AUTO_TEST_CASE(a_reduction_to_another_root_than_0_rotates_the_operands) {
    BOOST_TEST(!bool(ddl::prove_reduce<operand_order::ranks>(chain<2>::reduce(3, 1), 1)));
    BOOST_TEST(bool(ddl::prove_reduce(chain<2>::reduce(3, 1), 1)));
}

BOOST_AUTO_TEST_CASE(a_rank_in_the_middle_receives_a_piece_while_it_passes_on_the_one_before) {
    const auto program = chain<3>::broadcast(4, 1);
    BOOST_TEST(program.rounds() == 5);
    BOOST_TEST(program.width(2, 0) == 1);
    BOOST_REQUIRE(program.width(2, 1) == 2);
    const ddl::transfer sent = program.at(2, 1, 0), received = program.at(2, 1, 1);
    BOOST_TEST((sent.what == action::send && sent.peer == 3 && sent.chunk == 0));
    BOOST_TEST((received.what == action::receive && received.peer == 1 && received.chunk == 1));
    BOOST_TEST(program.width(0, 0) == 0, "the last waits until the first piece has come through");
    BOOST_TEST(program.width(1, 3) == 0, "the root is done when all pieces have left");
}
