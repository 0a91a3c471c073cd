// SPDX-License-Identifier: Apache-2.0
// expect: ddl: ranks on GPUs carry allreduce and barrier; copy the data to the host for the others
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>

#include "../collective/grid_of_threads.hpp"

#ifdef DDL_WRONG
void call(grid_of_threads& team, std::vector<float>& values) { ddl::broadcast(team, values); }
#else
void call(grid_of_threads& team, std::vector<float>& values) { ddl::broadcast(team.host(), values); }
#endif
