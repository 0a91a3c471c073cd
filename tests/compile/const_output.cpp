// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the output is const; pass a range that can be written to
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, const std::vector<float>& values) { ddl::allreduce(team, values); }
#else
void call(ddl::threads& team, const std::vector<float>& in, std::vector<float>& out) { ddl::allreduce(team, in, out); }
void call(ddl::threads& team, const std::vector<float>& in, float (&out)[8]) { ddl::allreduce(team, in, out); }
void call(ddl::threads& team, std::vector<float>& in, float (&out)[8]) { ddl::allreduce(team, in, out); }
void call(ddl::threads& team, std::vector<float>& values, float (*op)(float, float)) {
    ddl::allreduce(team, values, op);
}
#endif
