// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/tuning.md: a machine's own limits take effect.
// prints: allreduce of 400 float32 (1600 bytes) by sum over shared_memory, 1 ranks: direct, fused and staged through windows of 1048576 bytes, below the 2048 bytes from which buffers are mapped
//! [explained]
#include <ddl/allreduce.hpp>
#include <ddl/transport/shared_memory.hpp>

#include <cstdio>
#include <vector>

#include "my_machine.hpp"

int main() {
    ddl::shared_memory node;
    std::vector<float> values(400);  // 1600 bytes: one-shot by the limits that come with ddl
    std::puts(ddl::explain(ddl::allreduce_init(node, values)).c_str());
}
//! [explained]

static_assert(ddl::limits_of<ddl::shared_memory>.fingerprint() != ddl::direct_limits{}.fingerprint(),
              "this machine's limits are not those that come with ddl");

namespace ddl {
class mpi;  // of a header that needs MPI
}

//! [link]
template <>
inline constexpr ddl::link_cost ddl::link_of<ddl::mpi> = ddl::links::two_hundred_gigabit;
//! [link]
