// SPDX-License-Identifier: Apache-2.0
// expect: ddl: an element must be trivially copyable, and nothing in it const or volatile; pass plain values, or a struct of them
#include <ddl/buffer.hpp>
#include <ddl/transport/threads.hpp>

#include <string>

#ifdef DDL_WRONG
void call(ddl::threads& team, std::size_t count) { ddl::buffer<std::string>{team, count}; }
#else
void call(ddl::threads& team, std::size_t count) { ddl::buffer<char>{team, count}; }
#endif
