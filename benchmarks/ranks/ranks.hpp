// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "../contender.hpp"
#include "../settings.hpp"

// Where the ranks come from: one file a transport, so that they are compiled apart, and but some of them need MPI.

/// How the program ends: all was well, a result was wrong, or it could not be done.
enum class ending : int { right = 0, wrong = 1, refused = 2 };

ending measure_on_threads(const settings& asked);
ending measure_on_shared_memory(const settings& asked);
ending measure_on_mpi(const settings& asked);
ending measure_on_cluster(const settings& asked);

/// Runs `body`; if that throws, says why.
ending or_refused(const std::function<ending()>& body);

/// Runs `body` with MPI started, if the run asks for MPI: as a transport, or as a rival, which `body` gets. Throws
/// `usage_error` if the program was built without MPI. If `body` throws, it says why and ends the job: others may wait.
ending in_mpi(const settings& asked, const std::function<ending(const std::vector<contender>& rivals)>& body);
