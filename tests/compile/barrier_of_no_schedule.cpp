// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no schedule; write ddl::ring, or see docs/adding_a_schedule.md
#include <ddl/barrier.hpp>
#include <ddl/transport/threads.hpp>

#ifdef DDL_WRONG
void call(ddl::threads& team) { ddl::barrier<int>(team); }
#else
void call(ddl::threads& team) { ddl::barrier(team); }
#endif
