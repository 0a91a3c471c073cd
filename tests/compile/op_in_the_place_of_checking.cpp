// SPDX-License-Identifier: Apache-2.0
// expect: ddl: after the schedule comes ddl::checked or ddl::unchecked; pass an op as an argument
#include <ddl/allreduce.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<ddl::ring, ddl::sum>(team, data); }
#else
void call(ddl::threads& team, std::vector<float>& data) {
    ddl::allreduce<ddl::ring, ddl::unchecked>(team, data, ddl::sum{});
}
#endif
