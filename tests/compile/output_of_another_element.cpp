// SPDX-License-Identifier: Apache-2.0
// expect: ddl: in and out hold different elements; pass one type
#include <ddl/gather.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, const std::vector<float>& in, std::vector<double>& out) { ddl::gather(team, in, out); }
#else
void call(ddl::threads& team, const std::vector<float>& in, std::vector<float>& out) { ddl::gather(team, in, out); }
#endif
