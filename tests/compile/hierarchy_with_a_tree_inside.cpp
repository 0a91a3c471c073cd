// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the inner levels of hierarchical must be made of halves; write ddl::direct, ddl::ring or ddl::recursive_halving
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
using two_level = ddl::hierarchical<ddl::tree, ddl::ring>;
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<two_level>(team, values); }
#else
using two_level = ddl::hierarchical<ddl::ring, ddl::tree>;
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<two_level>(team, values); }
#endif
