// SPDX-License-Identifier: Apache-2.0
#include <ddl/kernel/hand_back.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

namespace data = boost::unit_test::data;

BOOST_DATA_TEST_CASE(a_byte_of_each_line_is_stored_to_and_none_beside, data::make({0, 1, 63, 64, 65, 4096, 5000}),
                     bytes) {
    const auto length = static_cast<std::size_t>(bytes);
    std::vector<std::byte> memory(length + 64, std::byte{255});
    ddl::kernel::hand_back(memory.data(), length);
    for (std::size_t i = 0; i < memory.size(); ++i)
        BOOST_TEST((memory[i] == std::byte{}) == (i < length && (i % 64 == 0 || i == length - 1)), "byte " << i);
}
