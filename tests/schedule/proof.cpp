// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/tree.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::flaw;
using ddl::operand_order;
using ddl::proof;
using ddl::recursive_doubling;
using ddl::ring;
using ddl::transfer;
using transfers = ddl::transfer_list<32>;

namespace {

/// A correct program after a small edit: `edit(list, rank, round)` changes what that rank does in that round.
template <ddl::program Correct, class Edit>
struct edited {
    Correct correct;
    Edit edit;
    constexpr int size() const { return correct.size(); }
    constexpr int chunks() const { return correct.chunks(); }
    constexpr int rounds() const { return correct.rounds(); }
    constexpr int width(int rank, int round) const { return list(rank, round).size(); }
    constexpr transfer at(int rank, int round, int index) const { return list(rank, round)[index]; }

private:
    constexpr transfers list(int rank, int round) const {
        transfers result;
        for (int i = 0; i < correct.width(rank, round); ++i) result.push(correct.at(rank, round, i));
        edit(result, rank, round);
        return result;
    }
};
template <ddl::program Correct, class Edit>
constexpr edited<Correct, Edit> after(Correct correct, Edit edit) {
    return {correct, edit};
}

/// The ring of `size` ranks, of which `wrong_rank` does something else in `wrong_round`: first its send, then its receive.
template <class Edit>
constexpr proof broken_ring(int size, int wrong_rank, int wrong_round, Edit edit) {
    return ddl::prove_allreduce(after(ddl::allreduce_program<ring>(size), [=](transfers& list, int rank, int round) {
        if (rank == wrong_rank && round == wrong_round) edit(list);
    }));
}

constexpr bool shows(const proof& found, flaw what, int rank, int round, int chunk) {
    return found.what == what && found.rank == rank && found.round == round && found.chunk == chunk && !found;
}

// What rank 1 sends in a round, and what it receives.
constexpr int outgoing(int size, int round) { return ring::round(1, size, round)[0].chunk; }
constexpr int incoming(int size, int round) { return ring::round(1, size, round)[1].chunk; }

constexpr auto to_nobody = [](transfers& list) { list.items[0].peer = -1; };
constexpr auto to_one_too_many = [](transfers& list) { list.items[0].peer = 70; };
constexpr auto to_itself = [](transfers& list) { list.items[0].peer = 1; };
constexpr auto no_chunk = [](transfers& list) { list.items[1].count = 0; };
constexpr auto a_negative_chunk = [](transfers& list) { list.items[1].chunk = -1; };
constexpr auto chunks_past_the_end = [](transfers& list) { list.items[1].count = 70; };
constexpr auto no_receive = [](transfers& list) { list.length = 1; };
constexpr auto no_send = [](transfers& list) {
    list.items[0] = list.items[1];
    list.length = 1;
};
constexpr auto another_chunk(int size) {  // neither the one that is meant nor the one that arrives
    return [=](transfers& list) { list.items[0].chunk = (list.items[0].chunk + 1) % size; };
}
constexpr auto one_message_more = [](transfers& list) { list.push(list[0]); };
constexpr auto combined_again = [](transfers& list) { list.items[1].what = action::receive_reduce; };
constexpr auto replaced = [](transfers& list) { list.items[1].what = action::receive; };

}  // namespace

static_assert(bool(proof{}) && proof{}.rank == -1, "a proof that found nothing holds");

static_assert(shows(broken_ring(3, 1, 0, to_nobody), flaw::bad_peer, 1, 0, outgoing(3, 0)));
static_assert(shows(broken_ring(3, 1, 2, to_one_too_many), flaw::bad_peer, 1, 2, outgoing(3, 2)));
static_assert(shows(broken_ring(3, 1, 3, to_itself), flaw::bad_peer, 1, 3, outgoing(3, 3)),
              "a rank is no peer of its own");

static_assert(shows(broken_ring(3, 1, 0, no_chunk), flaw::bad_chunk, 1, 0, incoming(3, 0)));
static_assert(shows(broken_ring(3, 1, 1, a_negative_chunk), flaw::bad_chunk, 1, 1, -1));
static_assert(shows(broken_ring(3, 1, 2, chunks_past_the_end), flaw::bad_chunk, 1, 2, incoming(3, 2)));

/// A ring that somebody cuts into `Chunks`.
template <int Chunks>
struct ring_of : ring {
    static constexpr int chunks(int) { return Chunks; }
};
template <class Schedule>
constexpr bool has_no_chunks(int size) {
    const auto is = [](const proof& found) { return shows(found, flaw::bad_chunk, -1, -1, -1); };
    return is(ddl::prove_allreduce(ddl::allreduce_program<Schedule>(size))) &&
           is(ddl::prove_reduce_scatter(ddl::reduce_scatter_program<Schedule>(size))) &&
           is(ddl::prove_all_gather(ddl::all_gather_program<Schedule>(size)));
}
static_assert(has_no_chunks<ring_of<0>>(1) && has_no_chunks<ring_of<0>>(5), "nothing holds the vector");
static_assert(has_no_chunks<ring_of<-30>>(1) && has_no_chunks<ring_of<-30>>(5), "nor does less than nothing");
struct ring_of_negative_rounds : ring {
    static constexpr int rounds(int) { return -2; }
};
static_assert(ddl::prove_allreduce(ddl::allreduce_program<ring_of_negative_rounds>(3)).what == flaw::wrong_result);

static_assert(shows(broken_ring(3, 1, 1, no_receive), flaw::unmatched, 1, 1, -1), "a send that nobody receives");
static_assert(shows(broken_ring(3, 0, 1, no_send), flaw::unmatched, 1, 1, incoming(3, 1)),
              "a receive that nobody sends");
static_assert(shows(broken_ring(3, 0, 1, another_chunk(3)), flaw::unmatched, 1, 1, incoming(3, 1)),
              "both, of different chunks");
static_assert(shows(broken_ring(3, 0, 1, one_message_more), flaw::unmatched, 1, 1, -1), "a message too many");

static_assert(shows(broken_ring(3, 1, 2, combined_again), flaw::twice, 1, 2, incoming(3, 2)),
              "a sum that is added to our part of it holds that part twice");
static_assert(shows(broken_ring(3, 1, 0, replaced), flaw::wrong_result, 0, 4, incoming(3, 0)),
              "a contribution that is overwritten is missed in the end");

struct ring_that_stops_early : ddl::ring {
    static constexpr int rounds(int size) noexcept { return ddl::ring::rounds(size) - 1; }
};
static_assert(!ddl::proves_allreduce<ring_that_stops_early>(3), "a contribution that never came must be missed");
static_assert(ddl::prove_allreduce(ddl::allreduce_program<ring_that_stops_early>(3)).what == flaw::wrong_result);
static_assert(shows(ddl::prove_allreduce(ddl::reduce_scatter_program<ring>(3)), flaw::wrong_result, 0, 2, 1),
              "half an allreduce leaves each rank with its own chunk only");

BOOST_DATA_TEST_CASE(a_peer_that_does_not_exist, data::xrange(3, 65), size) {
    const int last = ring::rounds(size) - 1;
    BOOST_TEST(shows(broken_ring(size, 1, last, to_nobody), flaw::bad_peer, 1, last, outgoing(size, last)));
    BOOST_TEST(shows(broken_ring(size, 1, last, to_one_too_many), flaw::bad_peer, 1, last, outgoing(size, last)));
    BOOST_TEST(shows(broken_ring(size, 1, last, to_itself), flaw::bad_peer, 1, last, outgoing(size, last)));
}

BOOST_DATA_TEST_CASE(chunks_that_do_not_exist, data::xrange(3, 65), size) {
    for (const int round : {0, size, ring::rounds(size) - 1}) {
        BOOST_TEST(shows(broken_ring(size, 1, round, no_chunk), flaw::bad_chunk, 1, round, incoming(size, round)));
        BOOST_TEST(shows(broken_ring(size, 1, round, a_negative_chunk), flaw::bad_chunk, 1, round, -1));
        BOOST_TEST(
            shows(broken_ring(size, 1, round, chunks_past_the_end), flaw::bad_chunk, 1, round, incoming(size, round)));
    }
}

BOOST_AUTO_TEST_CASE(a_range_of_chunks_whose_end_no_int_holds) {
    const auto found = broken_ring(3, 1, 0, [](transfers& list) { list.items[0].count = 2147483647; });
    BOOST_TEST(shows(found, flaw::bad_chunk, 1, 0, outgoing(3, 0)));
}

BOOST_DATA_TEST_CASE(a_send_and_a_receive_that_do_not_meet, data::xrange(3, 65), size) {
    for (const int round : {0, size, ring::rounds(size) - 1}) {
        BOOST_TEST(shows(broken_ring(size, 1, round, no_receive), flaw::unmatched, 1, round, -1));
        BOOST_TEST(shows(broken_ring(size, 0, round, no_send), flaw::unmatched, 1, round, incoming(size, round)));
        BOOST_TEST(
            shows(broken_ring(size, 0, round, another_chunk(size)), flaw::unmatched, 1, round, incoming(size, round)));
    }
}

BOOST_AUTO_TEST_CASE(a_receive_from_a_rank_that_sends_to_others_only) {
    const auto found = broken_ring(5, 1, 2, [](transfers& list) { list.items[1].peer = 3; });
    BOOST_TEST(shows(found, flaw::unmatched, 1, 2, incoming(5, 2)));
}

BOOST_AUTO_TEST_CASE(messages_of_one_pair_are_matched_in_the_order_in_which_they_were_sent) {
    const auto twice = [](transfers& list, bool crossed) {  // both chunks in one message become two messages
        for (int i = 0, width = list.length; i < width; ++i) {
            transfer second = list[i];
            list.items[i].count = 1;
            second.chunk = list[i].chunk + 1;
            second.count = 1;
            list.push(second);
            if (crossed && list[i].what == action::send) std::swap(list.items[i], list.items[list.length - 1]);
        }
    };
    const ddl::finer<ddl::direct::star> both{ddl::direct::broadcast(3, 0), 2};
    BOOST_TEST(bool(ddl::prove_broadcast(after(both, [&](transfers& list, int, int) { twice(list, false); }), 0)));
    const auto found = ddl::prove_broadcast(after(both, [&](transfers& list, int, int) { twice(list, true); }), 0);
    BOOST_TEST(shows(found, flaw::unmatched, 1, 0, 0));
}

namespace {

/// A tree in which leaves speak to those above them, though only the root has anything to say.
constexpr proof upside_down(int size) {
    return ddl::prove_broadcast(ddl::mirror<ddl::tree::whole>{ddl::tree::broadcast(size, 0)}, 0);
}

/// Pairs that swap what they have in place of combining it: nobody can send a chunk while it is overwritten.
constexpr proof swapped(int size) {
    return ddl::prove_allreduce(after(ddl::allreduce_program<recursive_doubling>(size), [](transfers& list, int, int) {
        for (int i = 0; i < list.length; ++i)
            if (list[i].what == action::receive_reduce) list.items[i].what = action::receive;
    }));
}

/// The reduction to rank 0 in which the `which`-th arrival replaces what is there.
constexpr proof one_of_them_replaces(int size, int which) {
    return ddl::prove_reduce(after(ddl::direct::reduce(size, 0),
                                   [=](transfers& list, int rank, int) {
                                       if (rank == 0) list.items[which].what = action::receive;
                                   }),
                             0);
}

/// Rank 0 tells rank 1 twice.
constexpr proof told_twice(int size) {
    return ddl::prove_broadcast(after(ddl::direct::broadcast(size, 0),
                                      [](transfers& list, int rank, int) {
                                          if (rank < 2) list.push(list[0]);
                                      }),
                                0);
}

constexpr auto combines_what_arrives = [](transfers& list, int, int) {
    for (int i = 0; i < list.length; ++i)
        if (list.items[i].what == action::receive) list.items[i].what = action::receive_reduce;
};

/// Direct, with the operands from 0 up in place of from the owner down.
constexpr auto from_0_up(int size) {
    return after(ddl::allreduce_program<ddl::direct>(size), [](transfers& list, int rank, int round) {
        if (round != 0) return;
        const int first = list.length / 2;
        for (int i = 0; i < rank / 2; ++i) std::swap(list.items[first + i], list.items[first + rank - 1 - i]);
    });
}

}  // namespace

static_assert(shows(upside_down(4), flaw::unready, 1, 0, 0));
static_assert(ddl::prove_all_gather(after(ddl::all_gather_program<ring>(4), [](transfers&, int, int) {})));
static_assert(shows(ddl::prove_all_gather(after(ddl::all_gather_program<ring>(4), combines_what_arrives)),
                    flaw::unready, 0, 0, 3),
              "what arrives is combined with nothing, which in a buffer is whatever lies there");

static_assert(shows(swapped(2), flaw::overlap, 0, 0, 0), "replaced while it is sent");
static_assert(shows(one_of_them_replaces(3, 0), flaw::overlap, 0, 0, 0), "combined with after it was replaced");
static_assert(shows(one_of_them_replaces(3, 1), flaw::overlap, 0, 0, 0), "replaced after it was combined with");
static_assert(shows(told_twice(3), flaw::overlap, 1, 0, 0), "written twice, and be it the same");

static_assert(ddl::prove_allreduce(from_0_up(4)), "any order is an allreduce");
static_assert(shows(ddl::prove_allreduce<operand_order::ranks>(from_0_up(4)), flaw::disordered, 2, 0, 2),
              "rank 2 adds rank 0 to itself before rank 1");
static_assert(ddl::prove_allreduce<operand_order::ranks>(from_0_up(2)), "of two ranks all orders are one");
static_assert(shows(ddl::prove_allreduce<operand_order::ranks>(ddl::allreduce_program<ring>(3)), flaw::disordered, 0, 0,
                    1));

BOOST_DATA_TEST_CASE(a_value_that_is_sent_before_it_came, data::xrange(3, 65), size) {
    BOOST_TEST(shows(upside_down(size), flaw::unready, 1, 0, 0));
    const auto early = ddl::prove_all_gather(ddl::mirror<ddl::rounds_of<ring>>{ddl::all_gather_program<ring>(size)});
    BOOST_TEST((early.what == flaw::unready));
    BOOST_TEST(early.round == 0);
}

BOOST_DATA_TEST_CASE(a_chunk_replaced_while_it_is_in_use, data::xrange(3, 16), size) {
    for (int which = 0; which < size - 1; ++which)
        BOOST_TEST(shows(one_of_them_replaces(size, which), flaw::overlap, 0, 0, 0), "arrival " << which);
    BOOST_TEST(shows(told_twice(size), flaw::overlap, 1, 0, 0));
    BOOST_TEST((swapped(size).what == flaw::overlap));
}

BOOST_DATA_TEST_CASE(a_contribution_counted_twice, data::xrange(3, 65), size) {
    for (const int round : {size - 1, size, ring::rounds(size) - 1})
        BOOST_TEST(shows(broken_ring(size, 1, round, combined_again), flaw::twice, 1, round, incoming(size, round)));
}

BOOST_DATA_TEST_CASE(operands_out_of_rank_order, data::xrange(3, 9), size) {
    BOOST_TEST(bool(ddl::prove_allreduce(from_0_up(size))));
    const auto found = ddl::prove_allreduce<operand_order::ranks>(from_0_up(size));
    BOOST_TEST(shows(found, flaw::disordered, 2, 0, 2));
}

BOOST_DATA_TEST_CASE(a_contribution_that_is_missed, data::xrange(2, 65), size) {
    BOOST_TEST(!ddl::proves_allreduce<ring_that_stops_early>(size));
    const auto found = ddl::prove_allreduce(ddl::allreduce_program<ring_that_stops_early>(size));
    BOOST_TEST((found.what == flaw::wrong_result));
    BOOST_TEST(found.round == ring_that_stops_early::rounds(size), "which shows after the last round");
    for (const int round : {0, size / 2 - 1, size - 2})
        BOOST_TEST((broken_ring(size, 1, round, replaced).what == flaw::wrong_result), "round " << round);
}

BOOST_AUTO_TEST_CASE(every_flaw_has_its_words) {
    BOOST_TEST(ddl::to_string(flaw::none) == std::string("no flaw"));
    BOOST_TEST(ddl::to_string(flaw::overlap) == std::string("a chunk replaced while it is sent or written"));
    BOOST_TEST(ddl::to_string(flaw::wrong_result) == std::string("a wrong result in the end"));
}

// Beyond 64 ranks a set of contributors is a sum of random weights.

namespace {

struct ring_that_forgets_beyond_64 : ring {
    static constexpr ddl::transfer_list<2> round(int rank, int size, int k) noexcept {
        auto list = ring::round(rank, size, k);
        if (size > 64 && rank == size - 1 && k == 0) list.items[1].what = action::receive;
        return list;
    }
};
struct ring_that_adds_twice_beyond_64 : ring {
    static constexpr ddl::transfer_list<2> round(int rank, int size, int k) noexcept {
        auto list = ring::round(rank, size, k);
        if (size > 64 && rank == size - 1 && k == size - 1) list.items[1].what = action::receive_reduce;
        return list;
    }
};
struct ring_that_stops_early_beyond_64 : ring {
    static constexpr int rounds(int size) noexcept { return ring::rounds(size) - (size > 64 ? 1 : 0); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_goes_wrong_beyond_64_ranks_only_is_found_too) {
    BOOST_TEST(ddl::proves_allreduce<ring_that_forgets_beyond_64>(64));
    BOOST_TEST(ddl::proves_allreduce<ring_that_adds_twice_beyond_64>(64));
    BOOST_TEST(ddl::proves_allreduce<ring_that_stops_early_beyond_64>(64));
    for (const int size : {65, 66, 100, 127, 128, 129, 500}) {
        const auto forgets = ddl::prove_allreduce(ddl::allreduce_program<ring_that_forgets_beyond_64>(size));
        const auto doubles = ddl::prove_allreduce(ddl::allreduce_program<ring_that_adds_twice_beyond_64>(size));
        BOOST_TEST((forgets.what == flaw::wrong_result), size << " ranks");
        BOOST_TEST((doubles.what == flaw::wrong_result), size << " ranks: a sum cannot tell when it was counted twice");
        BOOST_TEST(!ddl::proves_allreduce<ring_that_stops_early_beyond_64>(size), size << " ranks");
    }
}

BOOST_AUTO_TEST_CASE(a_wrong_peer_or_chunk_is_named_beyond_64_as_below) {
    for (const int size : {66, 200}) {
        BOOST_TEST(shows(broken_ring(size, 1, 5, to_nobody), flaw::bad_peer, 1, 5, outgoing(size, 5)));
        BOOST_TEST(shows(broken_ring(size, 1, 5, a_negative_chunk), flaw::bad_chunk, 1, 5, -1));
        BOOST_TEST(shows(broken_ring(size, 0, 5, no_send), flaw::unmatched, 1, 5, incoming(size, 5)));
        BOOST_TEST(shows(upside_down(size), flaw::unready, 1, 0, 0));
    }
}

BOOST_AUTO_TEST_CASE(all_weights_differ) {
    const ddl::symbolic_run run{ddl::tree::broadcast(4096, 0)};
    std::set<std::uint64_t> weights;
    for (int rank = 0; rank < 4096; ++rank) weights.insert(run.only(rank));
    BOOST_TEST(weights.size() == 4096u);
    BOOST_TEST(weights.count(run.nothing) == 0u);
}
