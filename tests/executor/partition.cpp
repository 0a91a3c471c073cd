// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/partition.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>

namespace data = boost::unit_test::data;
using ddl::partition;

static_assert(partition{10, 3}.length(0) == 4 && partition{10, 3}.length(1) == 3 && partition{10, 3}.length(2) == 3,
              "longer blocks come first");
static_assert(partition{10, 3}.first(1) == 4 && partition{10, 3}.first(3) == 10,
              "the end is where one more would begin");
static_assert(partition{12, 3}.length(0) == 4 && partition{12, 3}.longest() == 4);
static_assert(partition{2, 5}.length(1) == 1 && partition{2, 5}.length(2) == 0,
              "fewer elements than blocks leave some empty");
static_assert(partition{0, 5}.length(0) == 0 && partition{0, 5}.longest() == 0);
static_assert(partition{7, 1}.length(0) == 7 && partition{7, 1}.longest() == 7, "one block is everything");
static_assert(partition{}.length(0) == 0);
static_assert(partition{std::size_t{3} << 40, 7}.first(7) == std::size_t{3} << 40, "counts are not bound to int");

BOOST_DATA_TEST_CASE(blocks_are_neighbours_and_differ_by_one_at_most, data::xrange(1, 33), parts) {
    for (std::size_t count = 0; count <= 200; ++count) {
        const partition blocks{count, parts};
        BOOST_TEST(blocks.first(0) == 0u);
        BOOST_TEST(blocks.first(parts) == count);
        for (int part = 0; part < parts; ++part) {
            BOOST_TEST(blocks.first(part) + blocks.length(part) == blocks.first(part + 1),
                       "block " << part << " of " << count);
            BOOST_TEST(blocks.length(part) <= blocks.longest());
            BOOST_TEST(blocks.length(part) + 1 >= blocks.longest());
            if (part > 0) BOOST_TEST(blocks.length(part) <= blocks.length(part - 1));
        }
        BOOST_TEST(blocks.length(0) == blocks.longest());
    }
}
