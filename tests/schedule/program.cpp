// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/program_view.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <vector>

namespace data = boost::unit_test::data;
using ddl::action;
using ddl::mirrored;
using ddl::transfer;
using ddl::transfer_list;

namespace {

struct nothing_to_do {
    constexpr int size() const { return 1; }
    constexpr int chunks() const { return 1; }
    constexpr int rounds() const { return 0; }
    constexpr int width(int, int) const { return 0; }
    constexpr transfer at(int, int, int) const { return {}; }
};
struct without_chunks {
    constexpr int size() const { return 1; }
    constexpr int rounds() const { return 0; }
    constexpr int width(int, int) const { return 0; }
    constexpr transfer at(int, int, int) const { return {}; }
};
struct that_counts_in_long : nothing_to_do {
    constexpr long rounds() const { return 0; }
};

constexpr transfer_list<2> circular(int chunk, int count, int chunks) {
    transfer_list<2> transfers;
    transfers.push_circular(action::send, 7, chunk, count, chunks);
    return transfers;
}

}  // namespace

static_assert(transfer{action::send, 1, 2} == transfer{action::send, 1, 2, 1},
              "a transfer is of one chunk unless it says so");
static_assert(transfer{action::send, 1, 2} != transfer{action::receive, 1, 2});

static_assert(mirrored({action::send, 1, 2, 3}) == transfer{action::receive, 1, 2, 3}, "what was sent comes back");
static_assert(mirrored({action::receive, 1, 2, 3}) == transfer{action::send, 1, 2, 3}, "what was received is sent");
static_assert(mirrored({action::receive_reduce, 1, 2, 3}) == transfer{action::send, 1, 2, 3},
              "so is what was combined: backwards, the result spreads");

static_assert(circular(1, 3, 5).size() == 1 && circular(1, 3, 5)[0] == transfer{action::send, 7, 1, 3});
static_assert(circular(2, 3, 5).size() == 1, "up to the end of the circle is one piece");
static_assert(circular(3, 4, 5).size() == 2 && circular(3, 4, 5)[0] == transfer{action::send, 7, 3, 2} &&
                  circular(3, 4, 5)[1] == transfer{action::send, 7, 0, 2},
              "past the end of the circle it goes on at its beginning");
static_assert(circular(0, 5, 5).size() == 1 && circular(4, 5, 5).size() == 2,
              "a whole circle, from wherever it begins");
static_assert(circular(3, 0, 5).size() == 0, "no chunks are no transfer");

static_assert(ddl::program<nothing_to_do>);
static_assert(!ddl::program<without_chunks> && !ddl::program<that_counts_in_long> && !ddl::program<int>);

static_assert(ddl::wrap(-1, 5) == 4 && ddl::wrap(5, 5) == 0 && ddl::wrap(-5, 5) == 0 && ddl::wrap(3, 5) == 3);
static_assert(ddl::wrap(-7, 1) == 0, "one rank is its own neighbour");

BOOST_AUTO_TEST_CASE(a_list_begins_empty_and_keeps_its_order) {
    transfer_list<3> transfers;
    BOOST_TEST(transfers.size() == 0);
    for (const int peer : {5, 3, 4}) transfers.push({action::send, peer, 0});
    BOOST_TEST(transfers.size() == 3);
    BOOST_TEST(transfers[0].peer == 5);
    BOOST_TEST(transfers[2].peer == 4);
}

BOOST_AUTO_TEST_CASE(a_list_drops_what_it_has_no_room_for) {
    struct {
        transfer_list<2> transfers;
        transfer behind{action::receive, 7, 8, 9};
    } memory;
    for (const int peer : {5, 3, 4}) memory.transfers.push({action::send, peer, 0});
    memory.transfers.push_circular(action::send, 6, 1, 2, 2);
    BOOST_TEST(memory.transfers.size() == 2);
    BOOST_TEST(memory.transfers[1].peer == 3);
    BOOST_TEST((memory.behind == transfer{action::receive, 7, 8, 9}));
}

BOOST_DATA_TEST_CASE(pieces_of_a_circle_cover_each_chunk_once, data::xrange(1, 9), chunks) {
    for (int first = 0; first < chunks; ++first)
        for (int count = 0; count <= chunks; ++count) {
            std::vector<int> seen;
            const auto pieces = circular(first, count, chunks);
            for (int i = 0; i < pieces.size(); ++i)
                for (int c = pieces[i].chunk; c < pieces[i].chunk + pieces[i].count; ++c) seen.push_back(c);
            std::vector<int> expected;
            for (int c = first; c < first + count; ++c) expected.push_back(c % chunks);
            BOOST_TEST(seen == expected, count << " from " << first << " of " << chunks);
        }
}

BOOST_AUTO_TEST_CASE(ceil_log2_is_the_number_of_doublings_that_reach_all_ranks) {
    for (int size = 1, doublings = 0; size <= 5000; ++size) {
        if (size > 1 << doublings) ++doublings;
        BOOST_TEST(ddl::ceil_log2(size) == doublings, "of " << size << " ranks");
    }
    BOOST_TEST(ddl::ceil_log2(1 << 30) == 30);
    BOOST_TEST(ddl::ceil_log2((1 << 30) + 1) == 31, "which no int holds any more as a power of two");
}

BOOST_DATA_TEST_CASE(a_view_of_a_program_says_what_the_program_says, data::xrange(1, 6), size) {
    const auto ring = ddl::allreduce_program<ddl::ring>(size);
    const ddl::program_view first{ring};
    const ddl::program_view view{first};
    BOOST_TEST(view.size() == ring.size());
    BOOST_TEST(view.chunks() == ring.chunks());
    BOOST_REQUIRE(view.rounds() == ring.rounds());
    for (int rank = 0; rank < size; ++rank)
        for (int round = 0; round < ring.rounds(); ++round) {
            BOOST_REQUIRE(view.width(rank, round) == ring.width(rank, round));
            for (int i = 0; i < ring.width(rank, round); ++i)
                BOOST_TEST((view.at(rank, round, i) == ring.at(rank, round, i)));
        }
}
