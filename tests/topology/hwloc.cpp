// SPDX-License-Identifier: Apache-2.0
// needs: hwloc
#include <ddl/topology/hwloc.hpp>
#include <ddl/transport/threads.hpp>

#include <boost/test/unit_test.hpp>

#include <unistd.h>

BOOST_AUTO_TEST_CASE(a_machine_has_cores_memory_and_caches) {
    const ddl::hwloc_machine here;
    BOOST_TEST(here.cores() >= 1);
    BOOST_TEST(here.cores() <= ::sysconf(_SC_NPROCESSORS_CONF));
    BOOST_TEST(here.numa_nodes() >= 1);
    const ddl::caches near = here.near_caches();
    BOOST_TEST(near.second >= std::size_t{64} << 10);
    BOOST_TEST(near.second <= near.last);
    BOOST_TEST(near.last < std::size_t{1} << 36, "bytes, not something else");
}

BOOST_AUTO_TEST_CASE(a_communicator_goes_by_what_it_is_told) {
    ddl::threads::run(2, [](ddl::threads& team) {
        const ddl::caches near = ddl::hwloc_machine{}.near_caches();
        team.set_caches(near);
        if (team.cache_bytes() != near.last) throw std::runtime_error("it goes by others");
    });
}
