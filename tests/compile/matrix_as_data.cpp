// SPDX-License-Identifier: Apache-2.0
// expect: ddl: pointers and arrays are no elements; pass one span of all the values
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <span>

#ifdef DDL_WRONG
void call(ddl::threads& team, float (&matrix)[3][4]) { ddl::allreduce(team, matrix); }
#else
void call(ddl::threads& team, float (&matrix)[3][4]) { ddl::allreduce(team, std::span{&matrix[0][0], 12}); }
#endif
