// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_doubling.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <bit>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::recursive_doubling;

namespace {

int log2_of(int size) { return static_cast<int>(std::bit_width(static_cast<unsigned>(size))) - 1; }
bool power_of_two(int size) { return size == 1 << log2_of(size); }

/// The whole vector is one chunk: how often `rank` sends it.
int sent(int rank, int size) {
    int result = 0;
    for (int k = 0; k < recursive_doubling::rounds(size); ++k) {
        const auto transfers = recursive_doubling::round(rank, size, k);
        for (int i = 0; i < transfers.size(); ++i) result += transfers[i].what == action::send ? transfers[i].count : 0;
    }
    return result;
}

}  // namespace

static_assert(ddl::proves_allreduce<recursive_doubling>(1), "one rank has nothing to do, and that is an allreduce");
static_assert(ddl::proves_allreduce<recursive_doubling>(2) && ddl::proves_allreduce<recursive_doubling>(8));
static_assert(ddl::proves_allreduce<recursive_doubling>(3), "a rank too many is folded away");
static_assert(ddl::proves_allreduce<recursive_doubling>(7), "so are three");
static_assert(ddl::keeps_rank_order<recursive_doubling>, "what is exchanged always lies side by side");
static_assert(!ddl::has_halves<recursive_doubling>, "all of the vector travels in every round");
static_assert(!ddl::broadcasts<recursive_doubling> && !ddl::reduces<recursive_doubling>);

BOOST_DATA_TEST_CASE(it_is_an_allreduce_and_keeps_rank_order, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_allreduce<recursive_doubling>(size));
    BOOST_TEST(ddl::proves_rank_order<recursive_doubling>(size));
}

BOOST_DATA_TEST_CASE(log2_p_steps_and_2_more_where_p_is_no_power_of_two, data::xrange(1, 1030), size) {
    BOOST_TEST(recursive_doubling::rounds(size) == log2_of(size) + (power_of_two(size) ? 0 : 2));
}

BOOST_DATA_TEST_CASE(a_rank_sends_the_vector_log2_p_times_and_once_more_at_most, data::xrange(1, 65), size) {
    const int excess = size - (1 << log2_of(size));
    for (int rank = 0; rank < size; ++rank) {
        const bool folded = rank < 2 * excess;
        const int expected = folded && rank % 2 == 0 ? 1 : log2_of(size) + (folded ? 1 : 0);
        BOOST_TEST(sent(rank, size) == expected, "rank " << rank);
    }
}

BOOST_AUTO_TEST_CASE(peers_are_at_distances_1_2_4) {
    for (int rank = 0; rank < 16; ++rank)
        for (int k = 0; k < 4; ++k) BOOST_TEST(recursive_doubling::round(rank, 16, k)[0].peer == (rank ^ (1 << k)));
}

BOOST_AUTO_TEST_CASE(of_the_first_ranks_every_even_one_hands_its_operand_to_the_right) {
    for (const int rank : {0, 1, 2, 3, 4, 5}) {  // 11 is 3 more than 8
        const auto first = recursive_doubling::round(rank, 11, 0);
        BOOST_TEST(first.size() == 1);
        BOOST_TEST(first[0].peer == (rank ^ 1));
        BOOST_TEST((first[0].what == (rank % 2 == 0 ? action::send : action::receive_reduce)));
        const auto last = recursive_doubling::round(rank, 11, 4);
        BOOST_TEST((last[0].what == (rank % 2 == 0 ? action::receive : action::send)));
    }
    for (int rank = 6; rank < 11; ++rank) BOOST_TEST(recursive_doubling::round(rank, 11, 0).size() == 0);
    for (int k = 1; k < 4; ++k) BOOST_TEST(recursive_doubling::round(2, 11, k).size() == 0, "it waits for the result");
}

BOOST_AUTO_TEST_CASE(it_is_an_allreduce_of_thousands_in_rank_order) {
    for (const int size : {127, 128, 129, 1000, 4095, 4096}) {
        BOOST_TEST(ddl::proves_allreduce<recursive_doubling>(size), size << " ranks");
        BOOST_TEST(ddl::proves_rank_order<recursive_doubling>(size), size << " ranks");
    }
}
