// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "contender.hpp"

namespace compare {

/// The library that ours is compared with. A program is linked with one `peer_*.cpp`, which defines these.
class peer {
public:
    peer(int& count, char**& words);
    ~peer();
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;

    /// Its name and version, in its own words.
    std::string version() const;
    std::vector<contender> contenders() const;
    /// Ends all ranks: one cannot go on.
    [[noreturn]] void give_up() const;
};

/// Ours over transports that need MPI, if this program has one: "cluster" or "mpi".
std::vector<contender> ours_over_mpi(const std::string& transport);
/// Where ranks on several hosts meet.
meeting meeting_over_mpi();

}  // namespace compare
