// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no transport; pass a ddl::threads, ddl::shared_memory, ddl::mpi or ddl::cluster
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(std::vector<float>& values) { ddl::allreduce(0x44000000, values); }
#else
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce(team, values); }
#endif
