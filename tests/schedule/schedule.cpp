// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/hierarchical.hpp>
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/schedule.hpp>
#include <ddl/schedule/tree.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <string_view>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::chunk_range;
using ddl::shape;
using ddl::transfer;

namespace {

/// A user's schedule as a textbook gives it: a line along which the sum grows to the last rank, and comes back.
struct line {
    static constexpr int chunks(int) { return 1; }
    static constexpr int rounds(int size) { return 2 * (size - 1); }
    static constexpr ddl::transfer_list<1> round(int rank, int size, int k) {
        const bool back = k >= size - 1;
        const int sender = back ? 2 * (size - 1) - k : k;
        const int receiver = back ? sender - 1 : sender + 1;
        if (rank == sender) return {{{action::send, receiver, 0}}, 1};
        if (rank == receiver) return {{{back ? action::receive : action::receive_reduce, sender, 0}}, 1};
        return {};
    }
};

/// The same of a std::array, in which every rank has as many transfers: pairs that swap what they have.
struct two_ranks_only {
    static constexpr int chunks(int) { return 1; }
    static constexpr int rounds(int) { return 1; }
    static constexpr std::array<transfer, 2> round(int rank, int, int) {
        return {{{action::send, 1 - rank, 0}, {action::receive_reduce, 1 - rank, 0}}};
    }
};

/// A user's schedule put together from programs that exist: to the owners by one way, from them by another.
struct out_at_once_and_back_round_the_ring {
    static constexpr auto reduce_scatter(const shape& ranks) { return ddl::reduce_scatter_program<ddl::direct>(ranks); }
    static constexpr auto all_gather(const shape& ranks) { return ddl::all_gather_program<ddl::ring>(ranks); }
    static constexpr auto allreduce(const shape& ranks) { return ddl::then(reduce_scatter(ranks), all_gather(ranks)); }
};

/// The same in programs of a plain number of ranks: an allreduce is what the halves make of it.
struct halves_of_a_number {
    static constexpr auto reduce_scatter(int size) { return ddl::reduce_scatter_program<ddl::direct>(size); }
    static constexpr auto all_gather(int size) { return ddl::all_gather_program<ddl::ring>(size); }
};

struct without_rounds {
    static constexpr int chunks(int) { return 1; }
    static constexpr ddl::transfer_list<1> round(int, int, int) { return {}; }
};
struct whose_allreduce_is_a_number {
    static constexpr int allreduce(const shape&) { return 0; }
};
struct named {
    static constexpr const char* name = "named";
};

}  // namespace

static_assert(ddl::textbook<ddl::ring> && !ddl::composed<ddl::ring>);
static_assert(ddl::composed<ddl::hierarchical<ddl::direct, ddl::ring>> &&
              !ddl::textbook<ddl::hierarchical<ddl::direct, ddl::ring>>);
static_assert(ddl::textbook<line> && ddl::textbook<two_ranks_only>, "a round is a transfer_list or a std::array");
static_assert(ddl::composed<out_at_once_and_back_round_the_ring> &&
              !ddl::textbook<out_at_once_and_back_round_the_ring>);
static_assert(ddl::composed<halves_of_a_number> && ddl::has_halves<halves_of_a_number>);
static_assert(!ddl::schedule<without_rounds> && !ddl::schedule<whose_allreduce_is_a_number> && !ddl::schedule<int>);

static_assert(ddl::has_halves<ddl::direct> && ddl::has_halves<ddl::ring> && ddl::has_halves<ddl::recursive_halving>);
static_assert(ddl::has_halves<out_at_once_and_back_round_the_ring>);
static_assert(!ddl::has_halves<line> && !ddl::has_halves<ddl::tree>, "one chunk is no block for each of two ranks");
static_assert(!ddl::has_halves<int>);

static_assert(ddl::proves_allreduce<line>(4) && ddl::keeps_rank_order<line>);
static_assert(ddl::proves_allreduce<two_ranks_only>(2) && !ddl::proves_allreduce<two_ranks_only>(1));
static_assert(ddl::proves_allreduce<out_at_once_and_back_round_the_ring>(4) &&
              ddl::proves_reduce_scatter<out_at_once_and_back_round_the_ring>(4) &&
              ddl::proves_all_gather<out_at_once_and_back_round_the_ring>(4));
static_assert(ddl::keeps_rank_order<out_at_once_and_back_round_the_ring>, "the way back combines nothing");

static_assert(ddl::reduce_scatter_program<ddl::ring>(5).rounds() == 4 &&
                  ddl::all_gather_program<ddl::ring>(5).rounds() == 4,
              "the halves of a textbook schedule are the halves of its rounds");
static_assert(ddl::owned_ranges(ddl::reduce_scatter_program<ddl::ring>(5), 3) == 1);
static_assert(ddl::owned(ddl::reduce_scatter_program<ddl::ring>(5), 3) == chunk_range{3, 1}, "rank r owns block r");
static_assert(ddl::owned(ddl::reduce_scatter_program<ddl::multi_ring<3>>(5), 3) == chunk_range{9, 3}, "of equal ones");
static_assert(ddl::owns_in_rank_order<decltype(ddl::reduce_scatter_program<ddl::ring>(5))>);
static_assert(!ddl::owns_in_rank_order<decltype(ddl::hierarchical<ddl::direct, ddl::ring>::reduce_scatter(4))>,
              "a hierarchy says itself who owns what");
static_assert(!ddl::owns_in_rank_order<int>);

static_assert(ddl::schedule_name<ddl::ring>() == std::string_view{"ring"});
static_assert(ddl::schedule_name<named>() == std::string_view{"named"});
static_assert(ddl::schedule_name<line>() == std::string_view{"user's schedule"});

BOOST_DATA_TEST_CASE(a_users_schedules_are_proved_as_ours_are, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_allreduce<line>(size));
    BOOST_TEST(ddl::proves_rank_order<line>(size));
    BOOST_TEST(ddl::proves_allreduce<out_at_once_and_back_round_the_ring>(size));
    BOOST_TEST(ddl::proves_reduce_scatter<out_at_once_and_back_round_the_ring>(size));
    BOOST_TEST(ddl::proves_allreduce<halves_of_a_number>(size));
    BOOST_TEST(ddl::proves_broadcast<out_at_once_and_back_round_the_ring>(size, size / 2));
    BOOST_TEST(ddl::proves_reduce<out_at_once_and_back_round_the_ring>(size, size / 2));
    BOOST_TEST((ddl::proves_allreduce<ddl::hierarchical<out_at_once_and_back_round_the_ring, line>>(size)));
}

BOOST_DATA_TEST_CASE(the_two_halves_are_the_whole, data::xrange(1, 65), size) {
    const auto whole = ddl::allreduce_program<ddl::ring>(size);
    const auto first = ddl::reduce_scatter_program<ddl::ring>(size);
    const auto second = ddl::all_gather_program<ddl::ring>(size);
    BOOST_TEST(whole.rounds() == first.rounds() + second.rounds());
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < second.rounds(); ++k)
            BOOST_TEST((second.at(rank, k, 0) == whole.at(rank, first.rounds() + k, 0)));
}
