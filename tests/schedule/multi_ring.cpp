// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/schedule/proof.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::multi_ring;
using ddl::ring;

namespace {

template <int Rings>
void check_all(int size) {
    BOOST_TEST(ddl::proves_allreduce<multi_ring<Rings>>(size), Rings << " rings of " << size);
    BOOST_TEST(ddl::proves_reduce_scatter<multi_ring<Rings>>(size), Rings << " rings of " << size);
    BOOST_TEST(ddl::proves_all_gather<multi_ring<Rings>>(size), Rings << " rings of " << size);
}

}  // namespace

static_assert(ddl::proves_allreduce<multi_ring<2>>(1) && ddl::proves_allreduce<multi_ring<2>>(2));
static_assert(ddl::proves_allreduce<multi_ring<3>>(4), "rings need not come in pairs");
static_assert(ddl::proves_reduce_scatter<multi_ring<2>>(4) && ddl::proves_all_gather<multi_ring<2>>(4));
static_assert(ddl::proves_broadcast<multi_ring<2>>(4, 1) && ddl::proves_reduce<multi_ring<2>>(4, 1));
static_assert(!ddl::keeps_rank_order<multi_ring<2>>, "each ring rotates the operands");

BOOST_DATA_TEST_CASE(it_is_every_collective_that_it_offers, data::xrange(1, 65), size) {
    check_all<1>(size);
    check_all<2>(size);
    check_all<3>(size);
    check_all<4>(size);
}

BOOST_DATA_TEST_CASE(one_ring_is_the_ring, data::xrange(1, 33), size) {
    BOOST_TEST(multi_ring<1>::chunks(size) == ring::chunks(size));
    BOOST_TEST(multi_ring<1>::rounds(size) == ring::rounds(size));
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < ring::rounds(size); ++k)
            for (int i = 0; i < 2; ++i)
                BOOST_TEST((multi_ring<1>::round(rank, size, k)[i] == ring::round(rank, size, k)[i]));
}

BOOST_DATA_TEST_CASE(odd_rings_turn_the_other_way, data::xrange(3, 33), size) {
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < ring::rounds(size); ++k) {
            const auto transfers = multi_ring<4>::round(rank, size, k);
            BOOST_TEST(transfers.size() == 8);
            for (int i = 0; i < transfers.size(); ++i) {
                const bool turns_back = transfers[i].chunk % 2 != 0;
                const bool to_the_right = (transfers[i].what == action::send) != turns_back;
                BOOST_TEST(transfers[i].peer == (to_the_right ? rank + 1 : rank + size - 1) % size);
            }
        }
}

BOOST_DATA_TEST_CASE(after_the_first_half_rank_r_owns_neighbouring_chunks, data::xrange(2, 33), size) {
    for (int rank = 0; rank < size; ++rank) {
        const auto last = multi_ring<3>::round(rank, size, size - 2);
        for (int i = 0; i < last.size(); ++i)
            if (last[i].what == action::receive_reduce) BOOST_TEST(last[i].chunk / 3 == rank, "rank " << rank);
    }
}

BOOST_DATA_TEST_CASE(a_rank_sends_as_many_bytes_as_in_a_ring_in_more_messages, data::xrange(1, 33), size) {
    BOOST_TEST(multi_ring<3>::chunks(size) == 3 * size);
    for (int rank = 0; rank < size; ++rank) {
        int sent = 0;
        for (int k = 0; k < ring::rounds(size); ++k) {
            const auto transfers = multi_ring<3>::round(rank, size, k);
            for (int i = 0; i < transfers.size(); ++i) {
                sent += transfers[i].what == action::send;
                BOOST_TEST(transfers[i].count == 1);
            }
        }
        BOOST_TEST(sent == 3 * 2 * (size - 1), "rank " << rank);
    }
}

BOOST_AUTO_TEST_CASE(it_is_an_allreduce_of_hundreds) {
    for (const int size : {127, 128, 129, 512})
        BOOST_TEST(ddl::proves_allreduce<multi_ring<2>>(size), size << " ranks");
}
