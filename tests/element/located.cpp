// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/located.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <type_traits>

using ddl::located;

static_assert(ddl::element<located<float>> && ddl::element<located<std::int8_t>>);
static_assert(std::is_same_v<decltype(located<float>::index), std::int64_t>,
              "a global array is longer than an int says");
static_assert(located<int>{1, 2} == located<int>{1, 2}, "equal in value and in place");
static_assert(located<int>{1, 2} != located<int>{1, 3} && located<int>{1, 2} != located<int>{0, 2});

BOOST_AUTO_TEST_CASE(the_bytes_between_value_and_index_do_not_count) {
    located<std::int8_t> zeros, ones;
    for (unsigned byte = 0; byte < sizeof zeros; ++byte) {
        reinterpret_cast<unsigned char*>(&zeros)[byte] = 0;
        reinterpret_cast<unsigned char*>(&ones)[byte] = 255;
    }
    zeros.value = ones.value = 5;
    zeros.index = ones.index = 7;
    BOOST_TEST((zeros == ones));
}
