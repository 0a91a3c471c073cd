// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no plan; pass what ddl::allreduce_init or another _init returns
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& data) { ddl::start(team, data).wait(); }
#else
void call(ddl::threads& team, std::vector<float>& data) { ddl::start(team, ddl::allreduce_init(team, data)).wait(); }
#endif
