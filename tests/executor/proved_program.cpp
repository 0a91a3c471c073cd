// SPDX-License-Identifier: Apache-2.0
// Schedules that are right for the numbers of ranks which a compiler asks for, and wrong for the one at hand.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "../collective/oracle.hpp"
#include "../collective/places.hpp"

namespace {
using every_place = std::tuple<places::threads, places::messages<1>>;

constexpr int wrong = 6;

/// Six ranks miss the last round, and five stand for them in the exchange.
struct short_ring : ddl::ring {
    static constexpr const char* name = "short_ring";
    static constexpr int rounds(int size) { return ddl::ring::rounds(size) - (size == wrong); }
    static constexpr pairwise all_to_all(int size) { return {size - (size == wrong)}; }
};
/// Six ranks take another for the root.
struct bent_tree : ddl::tree {
    static constexpr const char* name = "bent_tree";
    static constexpr int bent(int size, int root) { return size == wrong ? (root + 1) % size : root; }
    static constexpr blocks gather(int size, int root) { return ddl::tree::gather(size, bent(size, root)); }
    static constexpr blocks scatter(int size, int root) { return ddl::tree::scatter(size, bent(size, root)); }
};
/// In rank order among few ranks; eight combine in turn.
struct turns_in_the_end {
    static constexpr const char* name = "turns_in_the_end";
    static constexpr bool few(int size) { return size < 8; }
    static constexpr int chunks(int size) { return few(size) ? 1 : size; }
    static constexpr int rounds(int size) { return few(size) ? ddl::tree::rounds(size) : ddl::ring::rounds(size); }
    static constexpr ddl::transfer_list<2> round(int rank, int size, int k) {
        if (!few(size)) return ddl::ring::round(rank, size, k);
        ddl::transfer_list<2> transfers;
        const auto edges = ddl::tree::round(rank, size, k);
        for (int i = 0; i < edges.size(); ++i) transfers.push(edges[i]);
        return transfers;
    }
};
/// The operand of the lowest rank.
struct lowest_rank {
    static constexpr bool commutative = false;
    int operator()(int left, int) const { return left; }
};
static_assert(ddl::proves_allreduce<short_ring>(3) && !ddl::proves_allreduce<short_ring>(wrong));
static_assert(!ddl::of_the_library<short_ring> && ddl::of_the_library<ddl::ring>);
static_assert(!ddl::of_the_library<ddl::hierarchical<ddl::direct, short_ring>>);
static_assert(ddl::of_the_library<ddl::hierarchical<ddl::recursive_halving, ddl::multi_ring<2>, ddl::tree>>);
static_assert(ddl::of_the_library<ddl::few_or_many<9, ddl::chain<2>, ddl::recursive_doubling>>);
static_assert(ddl::of_the_library<ddl::halving_direct_or<3, ddl::tree>>);
static_assert(!ddl::of_the_library<ddl::halving_direct_or<3, short_ring>>);
static_assert(!ddl::of_the_library<ddl::few_or_many<5, ddl::ring, short_ring>>);

template <class Call>
void refused(const std::string& words, const Call& call) {
    for (int again = 0; again < 2; ++again) require_error(ddl::errc::invalid_argument, words, call);
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_collective_refuses_rounds_that_do_not_add_up, Place, every_place) {
    Place::run(wrong, [](auto& ranks) {
        const std::string rank = ", rank " + std::to_string(ranks.rank()) + ": the rounds of ";
        const std::string ring = rank + "short_ring do not add up among 6 ranks: ";
        const std::string tree = rank + "bent_tree do not add up among 6 ranks: ";
        const std::vector<int> all(2 * wrong, 1), own(2, 1);
        std::vector<int> out(2 * wrong, -1), part(2, -1);
        refused("allreduce" + ring + "a wrong result in the end (rank 0, round 9, chunk 1); see docs/",
                [&] { ddl::allreduce<short_ring>(ranks, all, out); });
        refused("reduce" + ring, [&] { ddl::reduce<short_ring>(ranks, all, out, ddl::sum{}, 1); });
        refused("broadcast" + ring, [&] { ddl::broadcast<short_ring>(ranks, out, 5); });
        refused("reduce_scatter" + ring, [&] { ddl::reduce_scatter<short_ring>(ranks, all, part); });
        refused("all_gather" + ring, [&] { ddl::all_gather<short_ring>(ranks, own, out); });
        refused("all_to_all" + ring + "they are for another number",
                [&] { ddl::all_to_all<short_ring>(ranks, all, out); });
        refused("gather" + tree, [&] { ddl::gather<bent_tree>(ranks, own, out, 2); });
        refused("scatter" + tree, [&] { ddl::scatter<bent_tree>(ranks, all, part, 2); });
        for (const int each : out) require(each == -1, "the output was written");
        for (const int each : part) require(each == -1, "the block was written");
        ddl::allreduce(ranks, all, out);
        require(out == std::vector<int>(2 * wrong, wrong), "it is out of order afterwards");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(other_numbers_of_ranks_go_on, Place, every_place) {
    for (const int size : {1, 5, wrong, 7, 5})
        Place::run(size, [size](auto& ranks) {
            std::vector<int> data(9, 1);
            const auto plan = [&] { ddl::allreduce_init<short_ring>(ranks, data)(); };
            if (size == wrong) return refused("do not add up among 6 ranks", plan);
            plan();
            require(data == std::vector<int>(9, size), "another sum");
        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rank_that_is_alone_with_such_rounds_keeps_nobody_waiting, Place, every_place) {
    Place::run(wrong, [](auto& ranks) {
        std::vector<int> data(9, 1);
        const bool alone = ranks.rank() == 2;
        const ddl::error failure = error_of([&] {
            if (alone) ddl::allreduce<short_ring>(ranks, data);
            else ddl::allreduce<ddl::ring>(ranks, data);
        });
        require(failure.code() == ddl::errc::mismatch || (alone && failure.code() == ddl::errc::invalid_argument),
                failure.what());
        ddl::allreduce(ranks, data);
        require(data == std::vector<int>(9, wrong), "it is out of order afterwards");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_op_that_does_not_commute_is_held_to_rank_order, Place, every_place) {
    static_assert(ddl::keeps_rank_order<turns_in_the_end>);
    for (const int size : {7, 8})
        Place::run(size, [size](auto& ranks) {
            std::vector<int> data(24, ranks.rank() + 3);
            const auto call = [&] { ddl::allreduce<turns_in_the_end>(ranks, data, lowest_rank{}); };
            if (size == 8) return refused("among 8 ranks: operands combined out of rank order", call);
            call();
            require(data == std::vector<int>(24, 3), "another rank's operand");
            ddl::allreduce<turns_in_the_end>(ranks, data, ddl::maximum{});
        });
}

BOOST_AUTO_TEST_CASE(of_very_many_values_nothing_is_asked) {
    constexpr int many = 1200;
    using ddl::collective;
    struct never : ddl::ring {
        static constexpr int rounds(int) { return 0; }
    };
    const auto ask = [](int size) {
        ddl::require_proof<collective::allreduce, ddl::sum, never>(ddl::allreduce_program<never>(size), 0, size, 0);
    };
    ask(many);
    BOOST_CHECK_THROW(ask(700), ddl::error);
}

BOOST_AUTO_TEST_CASE(what_a_schedule_is_told_at_run_time_is_asked_for_itself) {
    static int missing = 0;
    struct told : ddl::ring {
        static int rounds(int size) { return ddl::ring::rounds(size) - missing; }
        static std::uint32_t fingerprint() noexcept { return static_cast<std::uint32_t>(missing); }
    };
    const auto ask = [] {
        using ddl::collective;
        ddl::require_proof<collective::allreduce, ddl::sum, told>(ddl::allreduce_program<told>(4), 0, 4, 0);
    };
    ask();
    missing = 1;
    BOOST_CHECK_THROW(ask(), ddl::error);
}

BOOST_AUTO_TEST_CASE(without_memory_nothing_is_asked) {
    struct poor {
        int size() const { return 4; }
        int chunks() const { return 1; }
        int rounds() const { throw std::bad_alloc{}; }
        int width(int, int) const { return 0; }
        ddl::transfer at(int, int, int) const { return {}; }
    };
    BOOST_CHECK_NO_THROW((ddl::require_proof<ddl::collective::allreduce, ddl::sum, short_ring>(poor{}, 0, 4, 0)));
}
