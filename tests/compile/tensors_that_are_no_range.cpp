// SPDX-License-Identifier: Apache-2.0
// expect: ddl: allreduce_n takes a range of contiguous ranges; pass a vector of vectors or of spans
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <array>
#include <tuple>
#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::tuple<std::vector<float>, std::vector<float>>& tensors) {
    ddl::allreduce_n(team, tensors);
}
#else
void call(ddl::threads& team, std::array<std::vector<float>, 2>& tensors) { ddl::allreduce_n(team, tensors); }
#endif
