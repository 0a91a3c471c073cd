// SPDX-License-Identifier: Apache-2.0
// expect: after instantiation
#include <ddl/executor/direct_limits.hpp>
#include <ddl/transport/threads.hpp>

// what a call asks for as soon as the compiler meets it
#ifdef DDL_WRONG
static_assert(ddl::limits_of<ddl::threads>.one_shot > 0);
#endif

template <>
inline constexpr ddl::direct_limits ddl::limits_of<ddl::threads>{.one_shot = 8192};

#ifndef DDL_WRONG
static_assert(ddl::limits_of<ddl::threads>.one_shot == 8192);
#endif
