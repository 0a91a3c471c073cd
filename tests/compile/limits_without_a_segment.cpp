// SPDX-License-Identifier: Apache-2.0
// expect: ddl: limits_of this transport has a segment of less than a cache line; see docs/tuning.md
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

template <>
#ifdef DDL_WRONG
inline constexpr ddl::direct_limits ddl::limits_of<ddl::threads>{.segment = 0};
#else
inline constexpr ddl::direct_limits ddl::limits_of<ddl::threads>{.segment = 64};
#endif

void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce(team, values); }
