// SPDX-License-Identifier: Apache-2.0
// expect: ddl: a plan or nonblocking call would refer to a temporary that is gone; name it first
#include <ddl/broadcast.hpp>
#include <ddl/transport/threads.hpp>

#include <span>
#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::size_t count) { ddl::broadcast_init(team, std::vector<float>(count))(); }
#else
void call(ddl::threads& team, std::vector<float>& data) { ddl::broadcast_init(team, std::span(data))(); }
#endif
