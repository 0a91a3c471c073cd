// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "../collective/oracle.hpp"
#include "../collective/places.hpp"

namespace data = boost::unit_test::data;

BOOST_DATA_TEST_CASE(shares_of_a_node_cover_the_vector_in_rank_order,
                     data::xrange(1, 6) * data::make({0, 1, 4, 17, 1000}), members, count) {
    const ddl::slicing slices{members, 2, 1};
    const ddl::node_shares shares{{static_cast<std::size_t>(count), slices.chunks()}, slices, members};
    std::size_t end = 0;
    for (int position = 0; position < members; ++position) {
        BOOST_TEST(shares.first(position) == end);
        BOOST_TEST(shares.length(position) <= shares.longest());
        end += shares.length(position);
    }
    BOOST_TEST(end == static_cast<std::size_t>(count));
}

BOOST_AUTO_TEST_CASE(a_group_sees_its_part_of_a_program_with_ranks_of_its_own) {
    // the inner half of two groups of three: ranks 3 to 5 see theirs as 0 to 2
    const ddl::slicing slices{3, 1, 1};
    const ddl::inside_groups<ddl::ring> whole{ddl::shape{3, 2}, slices};
    const ddl::group_view<ddl::inside_groups<ddl::ring>> group{whole, 3, 3, 1};
    const auto alone = ddl::reduce_scatter_program<ddl::ring>(3);
    BOOST_TEST(group.size() == 3);
    BOOST_TEST(group.rounds() == alone.rounds());
    for (int rank = 0; rank < 3; ++rank)
        for (int round = 0; round < group.rounds(); ++round) {
            BOOST_REQUIRE(group.width(rank, round) == alone.width(rank, round));
            for (int i = 0; i < group.width(rank, round); ++i)
                BOOST_TEST((group.at(rank, round, i) == alone.at(rank, round, i)));
        }
}

BOOST_AUTO_TEST_CASE(only_shares_cross_between_nodes) {
    places::levels<ddl::threads, ddl::recording, 4>::run(8, [](auto& ranks) {
        std::vector<int> data(4000, 1);
        ranks.wire().clear_log();
        ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::ring>, ddl::unchecked>(ranks, data);
        require(data == std::vector<int>(4000, 8), "another sum");
        std::size_t bytes = 0;
        for (const auto& one : ranks.wire().log())
            if (one.kind == ddl::recording::direction::send) bytes += one.bytes;
        // a share is a quarter; between two nodes a ring sends half of it each way
        require(bytes == 1000 * sizeof(int), std::to_string(bytes) + " bytes left the node");
    });
}

BOOST_AUTO_TEST_CASE(values_are_rounded_once_over_all_levels) {
    places::three_levels::run(8, [](auto& ranks) {
        // eight times 1 + 2^-8 is beyond the fraction of a bfloat16 in every partial sum, and exact in `float`
        for (const std::size_t count : {std::size_t{3}, std::size_t{5000}}) {
            std::vector<ddl::bfloat16> data(count, ddl::bfloat16{1.0F + 0x1p-7F});
            if (ranks.rank() % 2 != 0) data.assign(count, ddl::bfloat16{0x1p-6F});
            ddl::allreduce(ranks, data);
            const float exact = 4 * (1.0F + 0x1p-7F) + 4 * 0x1p-6F;
            for (const auto each : data) require(each.bits == ddl::bfloat16{exact}.bits, "it was rounded on the way");
        }
    });
}
