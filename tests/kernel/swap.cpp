// SPDX-License-Identifier: Apache-2.0
#include <ddl/kernel/swap.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace data = boost::unit_test::data;

BOOST_DATA_TEST_CASE(as_many_elements_as_asked_and_no_more, data::xrange(200), length) {
    const auto count = static_cast<std::size_t>(length);
    for (const std::size_t off : {0U, 1U, 7U}) {  // of one of them from a cache line's beginning
        std::vector<unsigned char> one(count + off + 1), other(count + 1);
        std::iota(one.begin(), one.end(), static_cast<unsigned char>(1));
        std::iota(other.begin(), other.end(), static_cast<unsigned char>(101));
        auto swapped_one = one, swapped_other = other;
        ddl::kernel::swap(swapped_one.data() + off, swapped_other.data(), count);
        std::swap_ranges(other.begin(), other.end() - 1, one.begin() + static_cast<std::ptrdiff_t>(off));
        BOOST_TEST(swapped_one == one, boost::test_tools::per_element());
        BOOST_TEST(swapped_other == other, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(the_count_is_elements_not_bytes) {
    std::vector<double> one(100, 1.5), other(100, 2.5);
    ddl::kernel::swap(one.data(), other.data(), 99);
    BOOST_TEST(one[98] == 2.5);
    BOOST_TEST(one[99] == 1.5);
    BOOST_TEST(other[98] == 1.5);
    BOOST_TEST(other[99] == 2.5);
}

BOOST_AUTO_TEST_CASE(null_pointers_are_fine_for_none) {
    int value = 7;
    ddl::kernel::swap<int>(nullptr, nullptr, 0);
    ddl::kernel::swap<int>(nullptr, &value, 0);
    BOOST_TEST(value == 7);
}
