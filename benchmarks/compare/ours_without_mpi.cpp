// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "peer.hpp"

namespace compare {

std::vector<contender> ours_over_mpi(const std::string& transport) {
    throw std::invalid_argument("this peer brings no MPI, and " + transport +
                                " needs one; pass --transport shared_memory");
}

meeting meeting_over_mpi() { throw std::invalid_argument("this peer brings no MPI, and several hosts need one"); }

}  // namespace compare
