// SPDX-License-Identifier: Apache-2.0
// expect: ddl: ranks that stage through the host carry allreduce and barrier; pass a ddl::cuda_peer, or copy the data
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>

#include "../collective/staged_threads.hpp"

using team_of_threads = staged_threads<ddl::threads>;
#ifdef DDL_WRONG
void call(team_of_threads& team, std::vector<float>& values) { ddl::broadcast(team, values); }
#else
void call(team_of_threads& team, std::vector<float>& values) { ddl::broadcast(team.host(), values); }
#endif
