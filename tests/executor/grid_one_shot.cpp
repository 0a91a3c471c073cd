// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/float8.hpp>
#include <ddl/element/half.hpp>
#include <ddl/executor/grid_one_shot.hpp>
#include <ddl/op/average.hpp>
#include <ddl/op/maximum.hpp>
#include <ddl/op/sum.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "host_grid.hpp"

namespace data = boost::unit_test::data;

namespace {

struct append {  // the digits of all ranks, in rank order
    constexpr std::int64_t operator()(std::int64_t l, std::int64_t r) const { return l * 10 + r; }
};
struct wide_value {
    std::int32_t words[3];
};
struct add_words {
    constexpr wide_value operator()(const wide_value& l, const wide_value& r) const {
        return {{l.words[0] + r.words[0], l.words[1] + r.words[1], l.words[2] - r.words[2]}};
    }
};

template <class Element, class Op, class Make>
void check(host_grid& grid, std::size_t count, int blocks, Op op, Make make) {
    using body = ddl::grid_one_shot<Op, Element>;
    const auto parcels = body::parcels(count);
    const auto least = (parcels + body::parcels(body::most(1)) - 1) / body::parcels(body::most(1));  // that hold them
    const int most = static_cast<int>(std::clamp(static_cast<std::size_t>(blocks), least, parcels));
    for (int turn = 0; turn < 3; ++turn) {
        auto in =
            values_of_ranks<Element>(grid.size(), count, [&](int rank, std::size_t i) { return make(rank + turn, i); });
        auto out = values_of_ranks<Element>(grid.size(), count + 1, [&](int, std::size_t) { return make(1, 1); });
        auto wanted = folded(in, op);
        BOOST_REQUIRE(grid.run(body{grid.places(in, in), count, op}, most).empty());
        for (const auto& one : in) BOOST_REQUIRE(same_bytes(one, wanted));
        wanted = folded(in, op);
        wanted.push_back(out[0].back());  // what lies behind the vector stays
        BOOST_REQUIRE(grid.run(body{grid.places(in, out), count, op}, most).empty());
        for (const auto& one : out) BOOST_REQUIRE(same_bytes(one, wanted));
    }
}

constexpr std::size_t counts[] = {1, 2, 3, 4, 5, 31, 257};

float small(int rank, std::size_t i) { return 0.25F * static_cast<float>(rank) + static_cast<float>(i % 7); }

}  // namespace

BOOST_DATA_TEST_CASE(every_rank_gets_the_fold_of_all_in_rank_order, grid_sizes() * data::make({1, 2, 5}), ranks,
                     blocks) {
    host_grid grid{ranks};
    for (const std::size_t count : counts) {
        check<float>(grid, count, blocks, ddl::sum{}, [](int rank, std::size_t i) {
            return 1.0F / (static_cast<float>(rank) + static_cast<float>(i) + 1);
        });
        check<std::int64_t>(grid, count, blocks, append{},
                            [](int rank, std::size_t i) { return rank % 8 + static_cast<std::int64_t>(i % 2); });
    }
}

BOOST_DATA_TEST_CASE(elements_of_any_size_travel_in_words, data::make({2, 9}) * data::make({3, 4}), ranks, blocks) {
    host_grid grid{ranks};
    for (const std::size_t count : counts) {
        check<ddl::half>(grid, count, blocks, ddl::average{},
                         [](int rank, std::size_t i) { return ddl::half{small(rank, i)}; });
        check<ddl::float8_e5m2>(grid, count, blocks, ddl::maximum{},
                                [](int rank, std::size_t i) { return ddl::float8_e5m2{small(rank, i)}; });
        check<wide_value>(grid, count, blocks, add_words{}, [](int rank, std::size_t i) {
            return wide_value{{rank, static_cast<std::int32_t>(i), -rank}};
        });
    }
}

BOOST_AUTO_TEST_CASE(as_many_elements_as_the_inboxes_hold) {
    host_grid grid{2};
    const auto make = [](int rank, std::size_t i) { return rank + static_cast<int>(i); };
    check<int>(grid, ddl::grid_one_shot<ddl::sum, int>::most(1), 1, ddl::sum{}, make);
    check<int>(grid, ddl::grid_one_shot<ddl::sum, int>::most(2), 2, ddl::sum{}, make);
}

BOOST_AUTO_TEST_CASE(words_of_an_earlier_cycle_are_not_taken_for_new) {
    using body = ddl::grid_one_shot<ddl::sum, int>;
    host_grid grid{2};
    const auto run = [&](int value) {
        auto in = values_of_ranks<int>(2, 1, [&](int rank, std::size_t) { return value + rank; });
        BOOST_TEST(grid.run(body{grid.places(in, in), 1, {}}, 1).empty());
        for (const auto& one : in) BOOST_TEST(one[0] == 2 * value + 1);
    };
    run(100);  // leaves words with the number 2 in the second half
    for (int rank = 0; rank < 2; ++rank) *grid.window(rank).shots(0) = 2 * body::cycle;
    for (int turn = 0; turn < 4; ++turn) run(turn);  // the first of which has the number 2 and the second half
    for (int rank = 0; rank < 2; ++rank) *grid.window(rank).shots(0) = 3 * body::cycle - 2;
    for (int turn = 0; turn < 4; ++turn) run(10 + turn);
}
