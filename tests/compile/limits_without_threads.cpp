// SPDX-License-Identifier: Apache-2.0
// expect: ddl: grid_limits_of this transport has blocks of no threads, of more than 512, or a row of no blocks
#include <ddl/allreduce.hpp>

#include "../collective/grid_of_threads.hpp"

template <>
#ifdef DDL_WRONG
inline constexpr ddl::grid_limits ddl::grid_limits_of<grid_of_threads>{.threads = 0};
#else
inline constexpr ddl::grid_limits ddl::grid_limits_of<grid_of_threads>{.threads = 512};
#endif

void call(grid_of_threads& team, std::vector<float>& values) { ddl::allreduce(team, values); }
