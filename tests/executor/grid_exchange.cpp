// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/grid_exchange.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "host_grid.hpp"

namespace data = boost::unit_test::data;

namespace {

/// Which of the ranks exchange in place: none, all, or every other one.
enum class in_place { none, all, some };

template <class Element>
void check(int ranks, int blocks, std::size_t each, std::size_t offset, in_place where) {
    host_grid grid{ranks};
    const std::size_t count = each * static_cast<std::size_t>(ranks) + offset;
    const auto value = [](int rank, std::size_t i) { return static_cast<Element>(rank * 1000 + static_cast<int>(i)); };
    auto in = values_of_ranks<Element>(ranks, count, value);
    const auto kept = in;
    auto out = values_of_ranks<Element>(ranks, count, [](int, std::size_t) { return Element{}; });
    auto places = grid.places(in, out, offset);
    const auto beside = [&](int rank) { return where == in_place::none || (where == in_place::some && rank % 2 == 0); };
    for (int rank = 0; rank < ranks; ++rank)
        if (!beside(rank)) places.out[rank] = in[static_cast<std::size_t>(rank)].data() + offset;
    BOOST_REQUIRE(grid.run(ddl::grid_exchange<Element>{places, each}, blocks).empty());
    for (std::size_t rank = 0; rank < kept.size(); ++rank) {
        const bool apart = beside(static_cast<int>(rank));
        auto wanted = apart ? std::vector<Element>(count) : kept[rank];
        for (std::size_t peer = 0; peer < kept.size(); ++peer)
            for (std::size_t i = 0; i < each; ++i)
                wanted[offset + peer * each + i] = kept[peer][offset + rank * each + i];
        BOOST_REQUIRE(same_bytes(apart ? out[rank] : in[rank], wanted));
        if (apart) BOOST_REQUIRE(same_bytes(in[rank], kept[rank]));
    }
}

}  // namespace

BOOST_DATA_TEST_CASE(block_d_of_rank_s_becomes_block_s_of_rank_d, grid_sizes() * data::make({1, 2, 5, 11}), ranks,
                     blocks) {
    for (const std::size_t each : {0U, 1U, 4U, 9U, 203U})
        for (const in_place where : {in_place::none, in_place::all, in_place::some})
            check<std::int32_t>(ranks, blocks, each, 0, where);
}

BOOST_DATA_TEST_CASE(elements_of_any_size_and_alignment_are_exchanged, data::xrange(0, 4), offset) {
    for (const std::size_t each : {3U, 64U, 100U}) {
        check<std::int8_t>(3, 2, each, static_cast<std::size_t>(offset), in_place::some);
        check<double>(4, 2, each, static_cast<std::size_t>(offset), in_place::all);
    }
}
