// SPDX-License-Identifier: Apache-2.0
// expect: ddl: multi_ring needs at least one ring; write ddl::multi_ring<2>
#include <ddl/allreduce.hpp>
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<ddl::multi_ring<0>>(team, values); }
#else
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<ddl::multi_ring<2>>(team, values); }
#endif
