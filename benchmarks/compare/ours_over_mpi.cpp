// SPDX-License-Identifier: Apache-2.0
// Ours over the MPI that this program was built with: between nodes as within one.
#include <ddl/transport/cluster.hpp>

#include "ours.hpp"
#include "peer.hpp"

namespace compare {

std::vector<contender> ours_over_mpi(const std::string& transport) {
    if (transport == "cluster") {
        const auto world = std::make_shared<ddl::cluster>(MPI_COMM_WORLD);
        std::vector<contender> both{ours_private(*world, transport), ours_mapped(*world, transport)};
        for (contender& each : both)  // which keep the cluster
            each.prepare = [world, prepare = each.prepare](const cell& asked) { return prepare(asked); };
        return both;
    }
    const auto world = std::make_shared<ddl::mpi>(MPI_COMM_WORLD);
    contender only = ours_private(*world, transport);
    only.prepare = [world, prepare = only.prepare](const cell& asked) { return prepare(asked); };
    return {only};
}

meeting meeting_over_mpi() {
    const auto world = std::make_shared<ddl::cluster>(MPI_COMM_WORLD);
    meeting all = meeting_of(*world);
    all.barrier = [world, barrier = all.barrier] { barrier(); };
    return all;
}

}  // namespace compare
