// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/unit_test.hpp>

#include <array>

using ddl::action;
using ddl::finer;
using ddl::mirror;
using ddl::rounds_of;
using ddl::then;
using ddl::transfer;

namespace {

/// Everything that two programs are asked is answered alike.
template <ddl::program One, ddl::program Other>
constexpr bool same(const One& one, const Other& other) {
    if (one.size() != other.size() || one.chunks() != other.chunks() || one.rounds() != other.rounds()) return false;
    for (int rank = 0; rank < one.size(); ++rank)
        for (int round = 0; round < one.rounds(); ++round) {
            if (one.width(rank, round) != other.width(rank, round)) return false;
            for (int i = 0; i < one.width(rank, round); ++i)
                if (one.at(rank, round, i) != other.at(rank, round, i)) return false;
        }
    return true;
}

constexpr auto reduce_scatter(int size) { return ddl::reduce_scatter_program<ddl::ring>(size); }
constexpr auto all_gather(int size) { return ddl::all_gather_program<ddl::ring>(size); }

struct ring_in_an_array : ddl::ring {
    static constexpr std::array<transfer, 2> round(int rank, int size, int k) noexcept {
        const auto transfers = ddl::ring::round(rank, size, k);
        return {{transfers[0], transfers[1]}};
    }
};

}  // namespace

static_assert(same(then(reduce_scatter(4), all_gather(4)), ddl::allreduce_program<ddl::ring>(4)),
              "an allreduce is its two halves, one after the other");
static_assert(same(ddl::rest_of<rounds_of<ddl::ring>>{ddl::allreduce_program<ddl::ring>(4), 3}, all_gather(4)),
              "and what is left of it behind the first is the second");
static_assert(same(mirror<mirror<rounds_of<ddl::ring>>>{{all_gather(4)}}, all_gather(4)),
              "what only moves values is its mirror's mirror");
static_assert(same(rounds_of<ring_in_an_array>{3, 0, 4}, rounds_of<ddl::ring>{3, 0, 4}),
              "a round may be a std::array as well as a transfer_list");
static_assert(same(finer<rounds_of<ddl::ring>>{{3, 0, 4}, 1}, rounds_of<ddl::ring>{3, 0, 4}), "one part is the whole");
static_assert(bool(ddl::prove_allreduce(finer<rounds_of<ddl::ring>>{{3, 0, 4}, 2})));

BOOST_AUTO_TEST_CASE(a_sequence_asks_the_second_program_from_its_own_round_0) {
    const auto both = then(reduce_scatter(5), all_gather(5));
    BOOST_TEST(both.size() == 5);
    BOOST_TEST(both.chunks() == 5);
    BOOST_TEST(both.rounds() == 8);
    for (int rank = 0; rank < 5; ++rank)
        for (int round = 0; round < 4; ++round)
            for (int i = 0; i < 2; ++i) {
                BOOST_TEST((both.at(rank, round, i) == reduce_scatter(5).at(rank, round, i)));
                BOOST_TEST((both.at(rank, 4 + round, i) == all_gather(5).at(rank, round, i)));
            }
}

BOOST_AUTO_TEST_CASE(a_sequence_may_join_programs_of_unlike_length_and_width) {
    const auto mixed = then(ddl::reduce_scatter_program<ddl::direct>(5), all_gather(5));
    BOOST_TEST(mixed.rounds() == 1 + 4);
    BOOST_TEST(mixed.width(2, 0) == 8);
    BOOST_TEST(mixed.width(2, 1) == 2);
    BOOST_TEST(bool(ddl::prove_allreduce(mixed)));
}

BOOST_AUTO_TEST_CASE(programs_without_rounds_are_neutral) {
    const rounds_of<ddl::ring> none{4, 0, 0};
    BOOST_TEST(same(then(none, reduce_scatter(4)), reduce_scatter(4)));
    BOOST_TEST(same(then(reduce_scatter(4), none), reduce_scatter(4)));
}

BOOST_AUTO_TEST_CASE(the_mirror_runs_backwards_and_turns_each_message_round) {
    const auto forward = reduce_scatter(4);
    const mirror<decltype(forward)> backward{forward};
    for (int rank = 0; rank < 4; ++rank)
        for (int round = 0; round < 3; ++round)
            for (int i = 0; i < 2; ++i)
                BOOST_TEST((backward.at(rank, round, i) == mirrored(forward.at(rank, 2 - round, i))));
}

BOOST_AUTO_TEST_CASE(the_mirror_of_a_reduce_scatter_is_an_all_gather) {
    for (int size = 1; size <= 64; ++size) {
        const auto forward = reduce_scatter(size);
        const mirror<decltype(forward)> backward{forward};
        BOOST_TEST(bool(ddl::prove_all_gather(backward)), "of " << size << " ranks");
        BOOST_TEST(bool(ddl::prove_allreduce(then(forward, backward))), "of " << size << " ranks");
    }
}

BOOST_AUTO_TEST_CASE(halves_of_two_schedules_that_own_alike_make_an_allreduce) {
    for (int size = 1; size <= 64; ++size) {
        const auto one = ddl::reduce_scatter_program<ddl::recursive_halving>(size);
        BOOST_TEST(bool(ddl::prove_allreduce(then(one, all_gather(size)))), "of " << size << " ranks");
    }
}

BOOST_AUTO_TEST_CASE(finer_chunks_move_together) {
    const finer<rounds_of<ddl::ring>> threefold{{4, 0, 6}, 3};
    BOOST_TEST(threefold.chunks() == 12);
    BOOST_TEST(threefold.rounds() == 6);
    BOOST_TEST((threefold.at(1, 0, 0) == transfer{action::send, 2, 0, 3}));
    BOOST_TEST((threefold.at(1, 0, 1) == transfer{action::receive_reduce, 0, 9, 3}));
    for (int parts = 1; parts <= 7; ++parts)
        for (int size = 1; size <= 16; ++size)
            BOOST_TEST(bool(ddl::prove_allreduce(finer<rounds_of<ddl::ring>>{{size, 0, 2 * (size - 1)}, parts})),
                       size << " ranks, " << parts << " parts");
}
