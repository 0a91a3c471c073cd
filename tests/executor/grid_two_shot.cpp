// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/bfloat16.hpp>
#include <ddl/executor/grid_two_shot.hpp>
#include <ddl/op/average.hpp>
#include <ddl/op/sum.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../collective/under_sanitizers.hpp"
#include "host_grid.hpp"

namespace data = boost::unit_test::data;

namespace {

struct triple {
    std::int16_t a, b, c;
};
struct add_triples {  // depends on the order of its operands
    constexpr triple operator()(const triple& l, const triple& r) const {
        const auto short_of = [](int value) { return static_cast<std::int16_t>(value); };
        return {short_of(2 * l.a + r.a), short_of(l.b - r.b), short_of(l.c + 3 * r.c)};
    }
};

// under a sanitizer other lengths follow over the same windows, and no more
constexpr int turns = under_address_sanitizer || under_thread_sanitizer ? 1 : 3;

/// Folds fresh values with so many blocks, in turns over the same windows; outputs differ from inputs, or are them.
template <class Element, class Op, class Make>
void check(host_grid& grid, std::size_t count, int blocks, std::size_t offset, Op op, Make make) {
    for (int turn = 0; turn < turns; ++turn) {
        auto in = values_of_ranks<Element>(grid.size(), count + offset,
                                           [&](int rank, std::size_t i) { return make(rank + turn, i); });
        const auto kept = in;
        auto out =
            values_of_ranks<Element>(grid.size(), count + offset, [&](int, std::size_t i) { return make(1, i); });
        auto wanted = folded(in, op);
        for (std::size_t i = 0; i < offset; ++i) wanted[i] = out[0][i];  // what lies before the vector stays
        BOOST_REQUIRE(
            grid.run(ddl::grid_two_shot<Op, Element>{grid.places(in, out, offset), count, op}, blocks).empty());
        for (const auto& one : out) BOOST_REQUIRE(same_bytes(one, wanted));
        for (std::size_t rank = 0; rank < in.size(); ++rank) BOOST_REQUIRE(same_bytes(in[rank], kept[rank]));
        for (std::size_t i = 0; i < offset; ++i) wanted[i] = in[0][i];
        grid.run(ddl::grid_two_shot<Op, Element>{grid.places(in, in, offset), count, op}, blocks);
        for (std::size_t rank = 0; rank < in.size(); ++rank) {
            for (std::size_t i = 0; i < offset; ++i) wanted[i] = kept[rank][i];
            BOOST_REQUIRE(same_bytes(in[rank], wanted));
        }
    }
}

/// A reduction whose results do not go everywhere: in place or beside, nothing else is written.
template <ddl::collective What, class Element, class Op, class Make>
void check_part(host_grid& grid, std::size_t count, int blocks, bool in_place, Op op, Make make) {
    for (int root = 0; root < (What == ddl::collective::reduce ? grid.size() : 1); ++root) {
        auto in = values_of_ranks<Element>(grid.size(), count, make);
        auto out = values_of_ranks<Element>(grid.size(), count, [&](int, std::size_t i) { return make(1, i); });
        const auto sums = folded(in, op);
        auto places = grid.places(in, in_place ? in : out);
        auto wanted = in_place ? in : out;
        for (int rank = 0; rank < grid.size(); ++rank) {
            const auto at = static_cast<std::size_t>(rank);
            const auto own =
                What == ddl::collective::reduce ? ddl::partition{count, 1} : ddl::partition{count, grid.size()};
            if (What == ddl::collective::reduce && rank != root) {
                places.out[rank] = nullptr;
                continue;
            }
            const int part = What == ddl::collective::reduce ? 0 : rank;
            if (in_place) places.out[rank] += own.first(part);
            for (std::size_t i = 0; i < own.length(part); ++i)
                wanted[at][i + (in_place ? own.first(part) : 0)] = sums[own.first(part) + i];
        }
        BOOST_REQUIRE(grid.run(ddl::grid_two_shot<Op, Element, What>{places, count, op, root}, blocks).empty());
        for (std::size_t rank = 0; rank < in.size(); ++rank)
            BOOST_REQUIRE(same_bytes(in_place ? in[rank] : out[rank], wanted[rank]));
    }
}

constexpr std::size_t counts[] = {0, 1, 3, 4, 5, 17, 64, 257, 1003};

}  // namespace

BOOST_DATA_TEST_CASE(every_rank_gets_the_fold_of_all_in_rank_order, grid_sizes() * data::make({1, 2, 5}), ranks,
                     blocks) {
    host_grid grid{ranks};  // one for all: calls of unlike sizes follow each other
    for (const std::size_t count : counts) {
        check<float>(grid, count, blocks, 0, ddl::sum{}, [](int rank, std::size_t i) {
            return 1.0F / (static_cast<float>(rank) + 1) + static_cast<float>(i);
        });
        check<triple>(grid, count, blocks, 0, add_triples{}, [](int rank, std::size_t i) {
            const auto value = static_cast<std::int16_t>(rank * 7 + static_cast<int>(i % 100));
            return triple{value, static_cast<std::int16_t>(value + 1), static_cast<std::int16_t>(value + 2)};
        });
    }
}

BOOST_DATA_TEST_CASE(the_root_or_the_owner_of_a_block_alone_gets_the_fold, grid_sizes() * data::make({1, 4}), ranks,
                     blocks) {
    host_grid grid{ranks};
    const auto fraction = [](int rank, std::size_t i) {
        return 1.0F / static_cast<float>(rank + 1 + static_cast<int>(i % 50));
    };
    const auto three = [](int rank, std::size_t i) {
        const auto value = static_cast<std::int16_t>(rank * 7 + static_cast<int>(i % 100));
        return triple{value, static_cast<std::int16_t>(value + 1), static_cast<std::int16_t>(value + 2)};
    };
    for (const std::size_t count : {0U, 1U, 5U, 17U, 64U, 1003U})
        for (const bool in_place : {false, true}) {
            check_part<ddl::collective::reduce, float>(grid, count, blocks, in_place, ddl::sum{}, fraction);
            check_part<ddl::collective::reduce_scatter, float>(grid, count, blocks, in_place, ddl::sum{}, fraction);
            check_part<ddl::collective::reduce_scatter, triple>(grid, count, blocks, in_place, add_triples{}, three);
        }
}

BOOST_DATA_TEST_CASE(narrow_elements_are_accumulated_wide_and_rounded_once, data::make({2, 5}) * data::xrange(1, 6),
                     ranks, blocks) {
    host_grid grid{ranks};
    for (const std::size_t count : counts)
        check<ddl::bfloat16>(grid, count, blocks, 0, ddl::average{}, [](int rank, std::size_t i) {
            return ddl::bfloat16{1.0F + 0.01F * static_cast<float>(rank) + static_cast<float>(i % 13)};
        });
}

BOOST_DATA_TEST_CASE(vectors_that_begin_anywhere_are_folded_alike, data::xrange(1, 4), offset) {
    host_grid grid{3};
    for (const std::size_t count : counts)
        check<std::int32_t>(grid, count, 2, static_cast<std::size_t>(offset), ddl::sum{},
                            [](int rank, std::size_t i) { return rank * 1000 + static_cast<std::int32_t>(i); });
}

namespace {

/// How often each of `count` elements comes to a thread of the blocks of all ranks, where they share a row.
template <class Element, std::size_t Together>
std::vector<int> visits(std::size_t count, bool aligned, int ranks, int blocks, int threads) {
    std::vector<int> seen(count);
    ddl::host_threads together{threads};
    for (int rank = 0; rank < ranks; ++rank)
        for (int block = 0; block < blocks; ++block)
            for (int thread = 0; thread < threads; ++thread) {
                const ddl::timeout limit{1};
                ddl::host_block space{rank, block, blocks, limit, together, static_cast<std::size_t>(thread)};
                ddl::each_packet<Together, Element>(
                    space, ddl::grid_share::of_all(space, ranks), count, aligned,
                    [&]<std::size_t Count>(std::size_t at, std::size_t stride) {
                        constexpr std::size_t unit = ddl::kernel::packet_elements<Element>;
                        for (std::size_t i = 0; i < Count; ++i)
                            for (std::size_t k = 0; k < unit; ++k) ++seen.at((at + i * stride) * unit + k);
                    },
                    [&](std::size_t at) { ++seen.at(at); });
            }
    return seen;
}

}  // namespace

BOOST_DATA_TEST_CASE(each_element_of_a_row_comes_to_one_thread,
                     data::xrange(1, 5) * data::xrange(1, 5) * data::make({1, 3}), ranks, blocks, threads) {
    for (const std::size_t count : counts) {
        const std::vector<int> once(count, 1);
        for (const bool aligned : {false, true}) {
            BOOST_TEST((visits<std::int16_t, 4>(count, aligned, ranks, blocks, threads) == once));
            BOOST_TEST((visits<double, 1>(count, aligned, ranks, blocks, threads) == once));
            BOOST_TEST((visits<triple, 2>(count, aligned, ranks, blocks, threads) == once));
        }
    }
}
