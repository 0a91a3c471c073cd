// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/bfloat16.hpp>
#include <ddl/executor/grid_tensors.hpp>
#include <ddl/executor/grid_two_shot.hpp>
#include <ddl/op/average.hpp>
#include <ddl/op/sum.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "host_grid.hpp"

namespace data = boost::unit_test::data;

namespace {

constexpr std::size_t small_table = 4096;

struct append {  // the digits of all ranks, in rank order
    constexpr std::int64_t operator()(std::int64_t l, std::int64_t r) const { return l * 10 + r; }
};
struct odd_bytes {
    std::int8_t a, b, c;
};
struct add_odd {
    constexpr odd_bytes operator()(const odd_bytes& l, const odd_bytes& r) const {
        const auto short_of = [](int value) { return static_cast<std::int8_t>(value); };
        return {short_of(2 * l.a + r.a), short_of(l.b - r.b), short_of(l.c + 3 * r.c)};
    }
};

/// All tensors of a rank lie in one vector, with `gap` elements between them.
template <class Element, class Op, class Make>
void check(int ranks, int blocks, const std::vector<std::size_t>& lengths, std::size_t gap, Op op, Make make) {
    host_grid grid{ranks};
    std::size_t count = gap;
    for (const std::size_t length : lengths) count += length + gap;
    auto values = values_of_ranks<Element>(ranks, count, make);
    const auto sums = folded(values, op);
    auto wanted = values;
    ddl::grid_table<Element, small_table> table{ranks};
    std::size_t at = gap;
    for (const std::size_t length : lengths) {
        BOOST_REQUIRE(!table.full());
        table.add(length, [&](int rank) {
            return reinterpret_cast<std::uintptr_t>(values[static_cast<std::size_t>(rank)].data() + at);
        });
        for (auto& one : wanted)
            for (std::size_t i = 0; i < length; ++i) one[at + i] = sums[at + i];
        at += length + gap;
    }
    const ddl::grid_windows windows = grid.places(values, values);
    BOOST_REQUIRE(grid.run(ddl::grid_tensors<Op, Element, small_table>{windows, table, op}, blocks).empty());
    for (std::size_t rank = 0; rank < values.size(); ++rank) BOOST_REQUIRE(same_bytes(values[rank], wanted[rank]));
}

float fraction(int rank, std::size_t i) { return 1.0F / static_cast<float>(rank + 1 + static_cast<int>(i % 97)); }

const std::vector<std::size_t> ragged{1, 4, 3, 100, 1, 1, 16, 1001, 2, 64, 5};

}  // namespace

BOOST_DATA_TEST_CASE(each_tensor_is_folded_where_it_lies, grid_sizes() * data::make({1, 2, 5}), ranks, blocks) {
    for (const std::size_t gap : {0U, 1U, 4U}) {
        check<float>(ranks, blocks, ragged, gap, ddl::sum{}, fraction);
        check<std::int64_t>(ranks, blocks, ragged, gap, append{},
                            [](int rank, std::size_t i) { return rank % 8 + static_cast<std::int64_t>(i % 2); });
    }
    check<float>(ranks, blocks, {1}, 0, ddl::sum{}, fraction);
}

BOOST_AUTO_TEST_CASE(elements_that_fill_no_packet_and_narrow_ones) {
    check<odd_bytes>(3, 3, ragged, 1, add_odd{}, [](int rank, std::size_t i) {
        const auto value = static_cast<std::int8_t>(rank * 5 + static_cast<int>(i % 11));
        return odd_bytes{value, value, value};
    });
    check<ddl::bfloat16>(5, 4, ragged, 0, ddl::average{},
                         [](int rank, std::size_t i) { return ddl::bfloat16{fraction(rank, i)}; });
}

BOOST_DATA_TEST_CASE(a_table_takes_tensors_until_it_is_full, data::make({1, 2, 32}), ranks) {
    ddl::grid_table<float, small_table> table{ranks};
    BOOST_TEST(table.empty());
    std::size_t rows = 0;
    for (; !table.full(); ++rows) table.add(5, [](int) { return std::uintptr_t{64}; });
    BOOST_TEST(rows == (small_table / 8 - 1) / (2 + static_cast<std::size_t>(ranks)));
    BOOST_TEST(table.packets() == 2 * rows);
    table.clear();
    BOOST_TEST((table.empty() && !table.full() && table.packets() == 0));
}

BOOST_AUTO_TEST_CASE(a_packet_is_found_from_any_that_comes_before) {
    ddl::grid_table<float, small_table> table{2};
    const auto aligned = [](int) { return std::uintptr_t{64}; };
    table.add(8, aligned);
    table.add(5, aligned);
    table.add(4, [](int rank) { return rank == 1 ? std::uintptr_t{68} : std::uintptr_t{64}; });
    constexpr std::size_t firsts[] = {0, 4, 0, 4, 0};
    constexpr std::size_t counts[] = {4, 4, 4, 1, 4};
    constexpr bool wholes[] = {true, true, true, false, false};
    constexpr int tensors[] = {0, 0, 1, 1, 2};
    for (std::size_t from = 0; from < 5; ++from)
        for (std::size_t at = from; at < 5; ++at) {
            int tensor = table.tensor_of(from);
            BOOST_TEST(tensor == tensors[from]);
            const auto place = table.find(at, 5, tensor);
            BOOST_TEST(tensor == tensors[at]);
            BOOST_TEST((place.first == firsts[at] && place.count == counts[at] && place.whole == wholes[at]));
            BOOST_TEST((table.address(place, 1) ==
                        reinterpret_cast<float*>(std::uintptr_t{64} + (tensors[at] == 2 ? 4 : 0)) + firsts[at]));
        }
    int tensor = 0;
    BOOST_TEST((table.find(5, 5, tensor).count == 0 && table.find(3, 3, tensor).count == 0 && tensor == 0));
}
