// SPDX-License-Identifier: Apache-2.0
// expect: ddl: chain needs at least one piece; write ddl::chain<16>
#include <ddl/allreduce.hpp>
#include <ddl/schedule/chain.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<ddl::chain<0>>(team, values); }
#else
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<ddl::chain<2>>(team, values); }
#endif
