// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/mpi_device_memory.hpp>

#include <boost/test/unit_test.hpp>

namespace {
int answer = 0;
}
/// This program's own MPI.
extern "C" int MPIX_Query_cuda_support() { return answer; }

BOOST_AUTO_TEST_CASE(mpi_is_asked) {
    BOOST_TEST(!ddl::mpi_takes_device_memory());
    answer = 1;
    BOOST_TEST(ddl::mpi_takes_device_memory());
    BOOST_TEST((MPIX_GPU_query_support == nullptr), "what an MPI has not is null, and links");
}
