// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/grid_move.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "host_grid.hpp"

namespace data = boost::unit_test::data;

namespace {

struct triple {  // fills no packet
    triple() = default;
    constexpr explicit triple(int value) noexcept : a{value}, b{value + 1}, c{value + 2} {}
    std::int32_t a, b, c;
};

template <class Element>
Element value_of(int rank, std::size_t i) {
    return static_cast<Element>(rank * 37 + static_cast<int>(i % 31) + 1);
}

/// The vector that one rank has, or all have parts of.
template <class Element>
std::vector<Element> vector_of(int rank, std::size_t count) {
    std::vector<Element> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(value_of<Element>(rank, i));
    return result;
}

/// Every collective of elements that lie `offset` off their alignment, from buffers of their own, or in place.
template <class Element, ddl::collective What>
void check(int ranks, int blocks, std::size_t count, std::size_t offset, int root, bool in_place) {
    constexpr bool from_root = What == ddl::collective::broadcast || What == ddl::collective::scatter;
    constexpr bool whole_out = What != ddl::collective::scatter;
    host_grid grid{ranks};
    const ddl::partition cut{count, ranks};
    const auto all = vector_of<Element>(root, count);
    const std::vector<Element> untouched(count + offset + 1, static_cast<Element>(99));
    std::vector<std::vector<Element>> in;
    std::vector<std::vector<Element>> out(static_cast<std::size_t>(ranks), untouched);
    auto wanted = out;
    ddl::grid_ranks<Element> places = grid.places(out, out, offset);
    for (int rank = 0; rank < ranks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const bool gives_all = from_root && rank == root;
        // what this rank gives
        std::vector<Element> given;
        if (gives_all) given = all;
        else if (!from_root)
            given.assign(all.begin() + static_cast<std::ptrdiff_t>(cut.first(rank)),
                         all.begin() + static_cast<std::ptrdiff_t>(cut.first(rank) + cut.length(rank)));
        given.insert(given.begin(), offset, Element{});
        in.push_back(given);
        // what it must have then
        const bool receives = What != ddl::collective::gather || rank == root;
        const std::size_t first = whole_out ? 0 : cut.first(rank);
        const std::size_t length = !receives ? 0 : whole_out ? count : cut.length(rank);
        for (std::size_t i = 0; i < length; ++i) wanted[at][offset + i] = all[first + i];
        if (!receives) places.out[rank] = nullptr;
    }
    for (int rank = 0; rank < ranks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        places.in[rank] = in[at].data() + offset;
        if (from_root && rank != root) places.in[rank] = nullptr;
        // in place the root's block, or this rank's, lies where it belongs
        const bool own_block = What == ddl::collective::all_gather || (What == ddl::collective::gather && rank == root);
        if (in_place && own_block) {
            std::copy(in[at].begin() + static_cast<std::ptrdiff_t>(offset), in[at].end(),
                      out[at].begin() + static_cast<std::ptrdiff_t>(offset + cut.first(rank)));
            places.in[rank] = places.out[rank] + cut.first(rank);
        } else if (in_place && What == ddl::collective::broadcast && rank == root) {
            std::copy(all.begin(), all.end(), out[at].begin() + static_cast<std::ptrdiff_t>(offset));
            places.in[rank] = places.out[rank];
        } else if (in_place && What == ddl::collective::scatter && rank == root) {
            places.out[rank] = in[at].data() + offset + cut.first(rank);
        }
    }
    BOOST_REQUIRE(grid.run(ddl::grid_move<Element, What>{places, count, root}, blocks).empty());
    for (int rank = 0; rank < ranks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        if (in_place && What == ddl::collective::scatter && rank == root) {
            auto kept = all;
            kept.insert(kept.begin(), offset, Element{});
            BOOST_REQUIRE(same_bytes(in[at], kept));
            BOOST_REQUIRE(same_bytes(out[at], untouched));
        } else {
            BOOST_REQUIRE(same_bytes(out[at], wanted[at]));
        }
    }
}

template <class Element>
void check_all(int ranks, int blocks, std::size_t count, std::size_t offset, int root, bool in_place) {
    check<Element, ddl::collective::all_gather>(ranks, blocks, count, offset, root, in_place);
    check<Element, ddl::collective::broadcast>(ranks, blocks, count, offset, root, in_place);
    check<Element, ddl::collective::gather>(ranks, blocks, count, offset, root, in_place);
    check<Element, ddl::collective::scatter>(ranks, blocks, count, offset, root, in_place);
}

}  // namespace

BOOST_DATA_TEST_CASE(elements_arrive_where_they_belong_and_nothing_else_is_written, grid_sizes() * data::make({1, 5}),
                     ranks, blocks) {
    for (const std::size_t count : {0U, 1U, 7U, 9U, 128U, 1003U})
        for (const bool in_place : {false, true}) check_all<std::int32_t>(ranks, blocks, count, 0, ranks / 2, in_place);
}

BOOST_DATA_TEST_CASE(elements_of_any_size_and_alignment_move, data::xrange(0, 4), offset) {
    for (const std::size_t count : {5U, 300U}) {
        const auto before = static_cast<std::size_t>(offset);
        check_all<std::int8_t>(3, 4, count, before, 2, false);
        check_all<double>(4, 2, count, before, 0, true);
        check_all<triple>(2, 1, count, before, 1, false);
    }
}
