// SPDX-License-Identifier: Apache-2.0
// expect: ddl: allreduce_n takes a range of contiguous ranges; pass a vector of vectors or of spans
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& tensors) { ddl::allreduce_n(team, tensors); }
#else
void call(ddl::threads& team, std::vector<std::vector<float>>& tensors) { ddl::allreduce_n(team, tensors); }
#endif
