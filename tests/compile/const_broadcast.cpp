// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the output is const; pass a range that can be written to
#include <ddl/broadcast.hpp>
#include <ddl/transport/threads.hpp>

#ifdef DDL_WRONG
void call(ddl::threads& team, const float (&weights)[8]) { ddl::broadcast(team, weights, 1); }
#else
void call(ddl::threads& team, float (&weights)[8]) { ddl::broadcast(team, weights, 1); }
#endif
