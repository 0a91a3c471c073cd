// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this communicator is const, and calls change it; pass one that is not
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(const ddl::threads& team, std::vector<float>& data) { ddl::allreduce(team, data); }
#else
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce(team, data); }
#endif
