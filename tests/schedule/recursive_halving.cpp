// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_halving.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <bit>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::mirrored;
using ddl::recursive_halving;

namespace {

int chunks_sent(int rank, int size, int k) {
    int result = 0;
    const auto transfers = recursive_halving::round(rank, size, k);
    for (int i = 0; i < transfers.size(); ++i) result += transfers[i].what == action::send ? transfers[i].count : 0;
    return result;
}

}  // namespace

static_assert(ddl::proves_allreduce<recursive_halving>(1), "one rank has nothing to do, and that is an allreduce");
static_assert(ddl::proves_allreduce<recursive_halving>(2) && ddl::proves_allreduce<recursive_halving>(8));
static_assert(ddl::proves_allreduce<recursive_halving>(3) && ddl::proves_allreduce<recursive_halving>(7),
              "no rank is folded away");
static_assert(ddl::proves_reduce_scatter<recursive_halving>(5) && ddl::proves_all_gather<recursive_halving>(5));
static_assert(ddl::proves_broadcast<recursive_halving>(5, 3) && ddl::proves_reduce<recursive_halving>(5, 3));
static_assert(!ddl::keeps_rank_order<recursive_halving>, "it rotates the operands");

BOOST_DATA_TEST_CASE(it_is_every_collective_that_it_offers, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_allreduce<recursive_halving>(size));
    BOOST_TEST(ddl::proves_reduce_scatter<recursive_halving>(size));
    BOOST_TEST(ddl::proves_all_gather<recursive_halving>(size));
}

BOOST_DATA_TEST_CASE(twice_ceil_log2_p_steps_for_every_p, data::xrange(1, 1030), size) {
    BOOST_TEST(recursive_halving::rounds(size) == 2 * ddl::ceil_log2(size));
}

BOOST_DATA_TEST_CASE(a_rank_sends_two_times_p_minus_1_chunks_of_p_for_every_p, data::xrange(1, 140), size) {
    BOOST_TEST(recursive_halving::chunks(size) == size);
    for (int rank = 0; rank < size; ++rank) {
        int sent = 0;
        for (int k = 0; k < recursive_halving::rounds(size); ++k) sent += chunks_sent(rank, size, k);
        BOOST_TEST(sent == 2 * (size - 1), "rank " << rank << ": there is no cliff beside a power of two");
    }
}

BOOST_DATA_TEST_CASE(each_round_passes_the_far_half_of_what_is_left, data::xrange(2, 65), size) {
    int left = size;
    for (int k = 0; k < ddl::ceil_log2(size); ++k) {
        for (int rank = 0; rank < size; ++rank) BOOST_TEST(chunks_sent(rank, size, k) == left / 2, "round " << k);
        left -= left / 2;
    }
    BOOST_TEST(left == 1);
}

BOOST_DATA_TEST_CASE(a_rank_has_one_peer_ahead_and_one_as_far_behind_or_one_for_both, data::xrange(2, 65), size) {
    const bool in_pairs = std::has_single_bit(static_cast<unsigned>(size));
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0, left = size; k < ddl::ceil_log2(size); ++k) {
            const int away = left = (left + 1) / 2;
            const auto transfers = recursive_halving::round(rank, size, k);
            BOOST_TEST((!in_pairs || transfers.size() == 2), "of a pair each passes one piece");
            for (int i = 0; i < transfers.size(); ++i) {
                const int way = transfers[i].what == action::send ? away : -away;
                BOOST_TEST(transfers[i].peer == (in_pairs ? rank ^ away : ddl::wrap(rank + way, size)));
            }
        }
}

BOOST_DATA_TEST_CASE(the_second_half_is_the_first_one_backwards, data::xrange(2, 33), size) {
    const int rounds = recursive_halving::rounds(size);
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < rounds / 2; ++k) {
            const auto forward = recursive_halving::round(rank, size, k);
            const auto backward = recursive_halving::round(rank, size, rounds - 1 - k);
            BOOST_TEST(backward.size() == forward.size());
            for (int i = 0; i < forward.size(); ++i) BOOST_TEST((backward[i] == mirrored(forward[i])));
        }
}

BOOST_DATA_TEST_CASE(after_the_first_half_rank_r_owns_chunk_r, data::xrange(2, 65), size) {
    for (int rank = 0; rank < size; ++rank) {
        const auto last = recursive_halving::round(rank, size, ddl::ceil_log2(size) - 1);
        BOOST_TEST(last.size() == 2);
        BOOST_TEST((last[1].what == action::receive_reduce && last[1].chunk == rank && last[1].count == 1));
    }
}

BOOST_DATA_TEST_CASE(an_allreduce_among_a_power_of_two_exchanges_the_longest_parts_with_neighbours,
                     data::make({2, 4, 8, 64}), size) {
    const auto program = ddl::allreduce_program<recursive_halving>(size);
    const int half = ddl::ceil_log2(size);
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < half; ++k) {
            const ddl::transfer sent = program.at(rank, k, 0), received = program.at(rank, k, 1);
            BOOST_TEST((sent.what == action::send && received.what == action::receive_reduce));
            BOOST_TEST((sent.peer == (rank ^ 1 << k) && received.peer == sent.peer), "round " << k);
            BOOST_TEST((sent.count == size >> (k + 1) && received.count == sent.count), "round " << k);
            BOOST_TEST((program.at(rank, 2 * half - 1 - k, 0) == mirrored(received)));
            BOOST_TEST((program.at(rank, 2 * half - 1 - k, 1) == mirrored(sent)));
        }
    BOOST_TEST(bool(ddl::prove_allreduce<ddl::operand_order::ranks>(program)), "and keeps rank order");
}

BOOST_DATA_TEST_CASE(where_halves_lie_closer_or_are_no_power_of_two_the_rounds_are_its_allreduce, data::xrange(1, 34),
                     size) {
    const bool in_pairs = std::has_single_bit(static_cast<unsigned>(size));
    const auto program =
        recursive_halving::allreduce(size, in_pairs ? ddl::nearer::halves_apart : ddl::nearer::neighbours);
    BOOST_TEST(program.rounds() == recursive_halving::rounds(size));
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < program.rounds(); ++k) {
            const auto transfers = recursive_halving::round(rank, size, k);
            BOOST_TEST(program.width(rank, k) == transfers.size());
            for (int i = 0; i < transfers.size(); ++i) BOOST_TEST((program.at(rank, k, i) == transfers[i]));
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
    for (const int size : {127, 128, 129, 1000, 1024})
        BOOST_TEST(ddl::proves_allreduce<recursive_halving>(size), size << " ranks");
#ifndef SANITIZED
    BOOST_TEST(ddl::proves_allreduce<recursive_halving>(4096));
#endif
}
