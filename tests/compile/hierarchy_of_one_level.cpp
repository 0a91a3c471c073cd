// SPDX-License-Identifier: Apache-2.0
// expect: ddl: hierarchical needs two levels or more; write ddl::hierarchical<ddl::direct, ddl::ring>
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& values) {
    ddl::allreduce<ddl::hierarchical<ddl::ring>>(team, values);
}
#else
using two_level = ddl::hierarchical<ddl::direct, ddl::ring>;
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<two_level>(team, values); }
#endif
