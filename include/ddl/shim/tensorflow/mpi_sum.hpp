// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/task.hpp>

namespace ddl::shim::tensorflow {

/// Replaces `count` elements of float, double or int64 by the sums over MPI_COMM_WORLD, by MPI_Allreduce alone; it has no
/// deadline. All ranks call it with the same count and element. Lies in libddl_pack.so, which is built with MPI.
using mpi_sum = ddl_status(void* data, std::size_t count, ddl_element element, const listener& heard) noexcept;

}  // namespace ddl::shim::tensorflow

extern "C" ddl::shim::tensorflow::mpi_sum ddl_sum_by_mpi;
