// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

ending in_mpi(const settings& asked, const std::function<ending(const std::vector<contender>&)>& body) {
    if (asked.against_mpi)
        throw usage_error("--mpi: the program was built without MPI; configure where CMake finds one");
    return body({});
}

ending measure_on_mpi(const settings& asked) {
    throw usage_error("--transport " + asked.transport +
                      ": the program was built without MPI; configure where CMake finds one");
}
ending measure_on_cluster(const settings& asked) { return measure_on_mpi(asked); }
