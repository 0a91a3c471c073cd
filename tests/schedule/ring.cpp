// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::ring;

static_assert(ddl::proves_allreduce<ring>(1), "one rank has nothing to do, and that is an allreduce");
static_assert(ddl::proves_allreduce<ring>(2), "left and right are the same rank");
static_assert(ddl::proves_allreduce<ring>(5));
static_assert(ddl::proves_reduce_scatter<ring>(5) && ddl::proves_all_gather<ring>(5));
static_assert(ddl::proves_all_to_all<ring>(4));
static_assert(ddl::proves_broadcast<ring>(4, 2) && ddl::proves_reduce<ring>(4, 2),
              "by way of a tree's scatter and gather");
static_assert(ring::rounds(1) == 0 && ring::rounds(5) == 8);
static_assert(ddl::keeps_rank_order<ring> == false, "it rotates the operands");
static_assert(ddl::proves_rank_order<ring>(2), "of which two are always side by side");
static_assert(!ddl::gathers<ring> && !ddl::scatters<ring>);

BOOST_DATA_TEST_CASE(it_is_every_collective_that_it_offers, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_allreduce<ring>(size));
    BOOST_TEST(ddl::proves_reduce_scatter<ring>(size));
    BOOST_TEST(ddl::proves_all_gather<ring>(size));
    BOOST_TEST(ddl::proves_all_to_all<ring>(size));
}

BOOST_DATA_TEST_CASE(every_rank_speaks_to_its_two_neighbours_only, data::xrange(2, 33), size) {
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < ring::rounds(size); ++k) {
            const auto transfers = ring::round(rank, size, k);
            BOOST_TEST(transfers.size() == 2, "one message out and one in, in every round");
            BOOST_TEST((transfers[0].what == action::send));
            BOOST_TEST(transfers[0].peer == (rank + 1) % size);
            BOOST_TEST(transfers[1].peer == (rank + size - 1) % size);
        }
}

BOOST_DATA_TEST_CASE(in_round_k_rank_r_passes_chunk_r_minus_1_minus_k, data::xrange(2, 33), size) {
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < ring::rounds(size); ++k)
            BOOST_TEST(ring::round(rank, size, k)[0].chunk == ddl::wrap(rank - 1 - k, size),
                       "rank " << rank << ", round " << k);
}

BOOST_DATA_TEST_CASE(after_the_first_half_rank_r_owns_chunk_r, data::xrange(2, 33), size) {
    for (int rank = 0; rank < size; ++rank) {
        BOOST_TEST(ring::round(rank, size, size - 2)[1].chunk == rank, "of " << size << " ranks, rank " << rank);
        BOOST_TEST((ring::round(rank, size, size - 2)[1].what == action::receive_reduce));
        BOOST_TEST((ring::round(rank, size, size - 1)[1].what == action::receive), "from there on values only travel");
    }
}

BOOST_DATA_TEST_CASE(a_rank_sends_two_times_p_minus_1_chunks_of_p, data::xrange(1, 65), size) {
    for (int rank = 0; rank < size; ++rank) {
        int sent = 0;
        for (int k = 0; k < ring::rounds(size); ++k) sent += ring::round(rank, size, k)[0].count;
        BOOST_TEST(sent == 2 * (size - 1), "rank " << rank);
    }
}

BOOST_DATA_TEST_CASE(chunk_c_is_folded_from_rank_c_plus_1_round_to_rank_c, data::xrange(2, 33), size) {
    for (int k = 0; k < size - 1; ++k)
        for (int chunk = 0; chunk < size; ++chunk) {
            const int sender = ddl::wrap(chunk + 1 + k, size);
            BOOST_TEST(ring::round(sender, size, k)[0].chunk == chunk, "chunk " << chunk << ", round " << k);
        }
}

BOOST_DATA_TEST_CASE(in_an_all_to_all_no_rank_receives_from_two_at_once, data::xrange(2, 33), size) {
    const auto exchange = ring::all_to_all(size);
    BOOST_TEST(exchange.rounds() == size - 1);
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < exchange.rounds(); ++k) {
            BOOST_TEST(exchange.width(rank, k) == 2);
            BOOST_TEST(exchange.at(rank, k, 0).peer == (rank + k + 1) % size);
            BOOST_TEST(exchange.at(rank, k, 1).peer == ddl::wrap(rank - k - 1, size));
        }
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
BOOST_AUTO_TEST_CASE(it_is_an_allreduce_of_thousands) {
    for (const int size : {127, 128, 129, 1024}) BOOST_TEST(ddl::proves_allreduce<ring>(size), size << " ranks");
#ifndef SANITIZED
    BOOST_TEST(ddl::proves_allreduce<ring>(4096));
#endif
}
