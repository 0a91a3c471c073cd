// SPDX-License-Identifier: Apache-2.0
// expect: ddl: ranks on GPUs fold in one launch; write ddl::direct, or name no schedule
#include <ddl/allreduce.hpp>

#include "../collective/grid_of_threads.hpp"

#ifdef DDL_WRONG
void call(grid_of_threads& team, std::vector<float>& values) { ddl::allreduce<ddl::ring>(team, values); }
#else
void call(grid_of_threads& team, std::vector<float>& values) { ddl::allreduce<ddl::direct>(team, values); }
#endif
