// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/selected.hpp>
#include <ddl/schedule/tree.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string_view>

namespace data = boost::unit_test::data;
using ddl::at_most;
using ddl::otherwise;
using ddl::recursive_doubling;
using ddl::recursive_halving;
using ddl::ring;
using ddl::selected;
using ddl::tree;

namespace {

using by_size = selected<at_most<64, tree>, at_most<4096, recursive_doubling>, otherwise<ring>>;
using nested = selected<at_most<100, by_size>, otherwise<recursive_halving>>;

struct its_name {
    template <class Schedule>
    constexpr std::string_view operator()() const {
        return ddl::schedule_name<Schedule>();
    }
};
template <class Schedule>
constexpr std::string_view chosen(std::size_t bytes) {
    return ddl::with_schedule<Schedule>(bytes, its_name{});
}

/// The action of a use may be anything, and it may be changed by it.
struct counter {
    int calls = 0;
    template <class>
    counter& operator()() {
        ++calls;
        return *this;
    }
};

struct ring_that_stops_early : ring {
    static constexpr int rounds(int size) noexcept { return ring::rounds(size) - 1; }
};

}  // namespace

static_assert(ddl::is_selected<by_size> && !ddl::is_selected<ring>);
static_assert(chosen<by_size>(0) == "tree" && chosen<by_size>(64) == "tree", "a limit is the last that fits");
static_assert(chosen<by_size>(65) == "recursive_doubling" && chosen<by_size>(4096) == "recursive_doubling");
static_assert(chosen<by_size>(4097) == "ring" && chosen<by_size>(static_cast<std::size_t>(-1)) == "ring");
static_assert(chosen<selected<otherwise<ring>>>(0) == "ring", "one choice is no choice");
static_assert(chosen<ring>(0) == "ring", "a schedule chooses itself");
static_assert(chosen<nested>(64) == "tree" && chosen<nested>(100) == "recursive_doubling" &&
                  chosen<nested>(101) == "recursive_halving",
              "a choice may be a choice");

using nearby = selected<at_most<64, tree>, ddl::near_at_most<4096, 3, 5, ring>, at_most<128, recursive_doubling>,
                        otherwise<recursive_halving>>;
constexpr std::string_view chosen_among(ddl::company ranks, std::size_t bytes) {
    return ddl::with_schedule<nearby>(bytes, ranks, its_name{});
}
static_assert(chosen_among({4, true}, 64) == "tree" && chosen_among({4, true}, 65) == "ring");
static_assert(chosen_among({3, true}, 4096) == "ring" && chosen_among({5, true}, 4096) == "ring");
static_assert(chosen_among({4, true}, 4097) == "recursive_halving");
static_assert(chosen_among({2, true}, 65) == "recursive_doubling" &&
              chosen_among({6, true}, 65) == "recursive_doubling");
static_assert(chosen_among({4, false}, 65) == "recursive_doubling", "on several hosts");
static_assert(chosen<nearby>(65) == "recursive_doubling", "and where nobody says who calls");
static_assert(ddl::arguments_of<nearby>::fit);
static_assert(!ddl::arguments_of<selected<at_most<64, tree>, ddl::near_at_most<64, 3, 5, ring>, otherwise<ring>>>::fit,
              "never taken");
static_assert(!ddl::arguments_of<selected<at_most<64, tree>, ddl::near_at_most<128, 3, 5, ring>>>::fit, "not for all");
static_assert(!ddl::proves_allreduce<selected<ddl::near_at_most<64, 2, 4, ring_that_stops_early>, otherwise<ring>>>(5));

using crowding = selected<at_most<64, tree>, ddl::crowded_at_most<4096, 3, 5, ring, ddl::nearer::neighbours>,
                          ddl::crowded_at_most<4096, 4, 4, recursive_doubling, ddl::nearer::halves_apart>,
                          otherwise<recursive_halving>>;
constexpr std::string_view crowded(ddl::company ranks, std::size_t bytes) {
    return ddl::with_schedule<crowding>(bytes, ranks, its_name{});
}
static_assert(crowded({.ranks = 4, .near = true, .crowded = true}, 65) == "ring");
static_assert(crowded({.ranks = 4, .near = true, .crowded = true, .close = ddl::nearer::halves_apart}, 65) ==
              "recursive_doubling");
static_assert(crowded({.ranks = 5, .near = true, .crowded = true, .close = ddl::nearer::halves_apart}, 65) ==
              "recursive_halving");
static_assert(crowded({.ranks = 4, .near = true, .crowded = true}, 4097) == "recursive_halving");
static_assert(crowded({.ranks = 6, .near = true, .crowded = true}, 65) == "recursive_halving");
static_assert(crowded({.ranks = 4, .near = true}, 65) == "recursive_halving", "a core each");
static_assert(chosen<crowding>(65) == "recursive_halving", "and where nobody says who calls");
static_assert(ddl::arguments_of<crowding>::fit);
static_assert(
    !ddl::arguments_of<selected<at_most<64, tree>, ddl::crowded_at_most<64, 3, 5, ring, ddl::nearer::neighbours>,
                                otherwise<ring>>>::fit,
    "never taken");

using long_ones = selected<at_most<64, tree>, ddl::crowded_at_most<4096, 3, 5, ring>,
                           ddl::long_whole_at_most<4096, 4, 4, ring, ddl::nearer::neighbours>,
                           ddl::long_whole_at_most<8192, 3, 5, recursive_doubling>, otherwise<recursive_halving>>;
constexpr std::string_view of_long_ones(ddl::company ranks, std::size_t bytes) {
    return ddl::with_schedule<long_ones>(bytes, ranks, its_name{});
}
static_assert(of_long_ones({.ranks = 4, .near = true, .long_whole = true}, 4096) == "ring");
static_assert(of_long_ones({.ranks = 4, .near = true, .long_whole = true}, 4097) == "recursive_doubling");
static_assert(of_long_ones({.ranks = 4, .near = true, .long_whole = true, .close = ddl::nearer::halves_apart}, 65) ==
              "recursive_doubling");
static_assert(of_long_ones({.ranks = 4, .near = true, .crowded = true, .close = ddl::nearer::halves_apart}, 65) ==
                  "ring",
              "whoever is close");
static_assert(of_long_ones({.ranks = 6, .near = true, .long_whole = true}, 65) == "recursive_halving");
static_assert(of_long_ones({.ranks = 5, .near = true}, 65) == "recursive_halving",
              "pieces at any length, or a core each");
static_assert(ddl::arguments_of<long_ones>::fit);
static_assert(
    !ddl::arguments_of<selected<at_most<64, tree>, ddl::long_whole_at_most<64, 3, 5, ring>, otherwise<ring>>>::fit,
    "never taken");

using apart = selected<ddl::own_core_at_most<4096, 3, 5, ring>, at_most<64, tree>, otherwise<recursive_halving>>;
constexpr std::string_view on_own_cores(ddl::company ranks, std::size_t bytes) {
    return ddl::with_schedule<apart>(bytes, ranks, its_name{});
}
static_assert(on_own_cores({.ranks = 3, .near = true, .own_cores = true}, 4096) == "ring");
static_assert(on_own_cores({.ranks = 3, .near = true, .own_cores = true}, 4097) == "recursive_halving");
static_assert(on_own_cores({.ranks = 6, .near = true, .own_cores = true}, 64) == "tree");
static_assert(on_own_cores({.ranks = 3, .near = true}, 64) == "tree", "who share cores, or nobody knows");
static_assert(ddl::arguments_of<apart>::fit);

static_assert(ddl::proves_allreduce<by_size>(5), "a proof is one of all choices");
static_assert(!ddl::proves_allreduce<selected<at_most<64, ring_that_stops_early>, otherwise<ring>>>(5));
static_assert(!ddl::proves_allreduce<selected<at_most<64, ring>, otherwise<ring_that_stops_early>>>(5));
static_assert(!ddl::keeps_rank_order<by_size>, "and order is kept if all choices keep it");
static_assert(ddl::keeps_rank_order<selected<at_most<64, tree>, otherwise<recursive_doubling>>>);

BOOST_AUTO_TEST_CASE(what_is_used_is_the_callers_own_object) {
    counter uses;
    for (const std::size_t bytes : {0u, 65u, 5000u}) BOOST_TEST(&ddl::with_schedule<by_size>(bytes, uses) == &uses);
    BOOST_TEST(uses.calls == 3);
}

BOOST_DATA_TEST_CASE(every_choice_is_proved, data::xrange(1, 65), size) {
    BOOST_TEST(ddl::proves_allreduce<by_size>(size));
    BOOST_TEST(ddl::proves_allreduce<nested>(size));
    BOOST_TEST((ddl::proves_reduce_scatter<selected<at_most<64, ring>, otherwise<recursive_halving>>>(size)));
    BOOST_TEST((ddl::proves_broadcast<selected<at_most<64, tree>, otherwise<recursive_halving>>>(size, size - 1)));
}
