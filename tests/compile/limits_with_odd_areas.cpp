// SPDX-License-Identifier: Apache-2.0
// expect: ddl: limits_of this transport has areas that are no power of two; make them 2, 4 or 8: see docs/tuning.md
#include <ddl/broadcast.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

template <>
#ifdef DDL_WRONG
inline constexpr ddl::direct_limits ddl::limits_of<ddl::threads>{.areas = 3};
#else
inline constexpr ddl::direct_limits ddl::limits_of<ddl::threads>{.areas = 8};
#endif

void call(ddl::threads& team, std::vector<float>& values) { ddl::broadcast(team, values, 0); }
