// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every program over the double begins with this: blocks of two threads.

#include <ddl/executor/grid_limits.hpp>
#include <ddl/transport/concepts.hpp>

namespace ddl {

class cuda_peer;
class device_mpi;
template <memory_transport Host>
class cuda_ipc;
template <>
inline constexpr grid_limits grid_limits_of<cuda_peer>{.threads = 2};
template <>
inline constexpr grid_limits grid_limits_of<device_mpi>{.threads = 2};
template <class Host>
inline constexpr grid_limits grid_limits_of<cuda_ipc<Host>>{.threads = 2};

}  // namespace ddl
