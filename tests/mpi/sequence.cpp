// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4 5 8
#include "../collective/drawn_calls.hpp"
#include "world.hpp"

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

BOOST_AUTO_TEST_CASE(calls_in_any_sequence) {
    on_every_transport([](auto& ranks) {
        drawn_calls calling{ranks, 7, 1'000'000};
        calling.make(60);
    });
}
