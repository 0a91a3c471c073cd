// SPDX-License-Identifier: Apache-2.0
#include <ddl/topology/caches.hpp>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(a_machine_has_caches_and_the_last_is_the_largest) {
    const ddl::caches known = ddl::caches::of_this_machine();
    BOOST_TEST(known.second >= std::size_t{64} << 10);
    BOOST_TEST(known.second <= known.last);
    BOOST_TEST(known.last < std::size_t{1} << 36, "bytes, not something else");
}

BOOST_AUTO_TEST_CASE(they_do_not_change) {
    BOOST_TEST(ddl::caches::of_this_machine().last == ddl::caches::of_this_machine().last);
}
