// SPDX-License-Identifier: Apache-2.0
// expect: ddl: selected takes growing limits and ends with otherwise; write ddl::selected<ddl::at_most<4096, ddl::tree>, ddl::otherwise<ddl::ring>>
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
using by_size = ddl::selected<ddl::at_most<9, ddl::tree>, ddl::at_most<8, ddl::tree>, ddl::otherwise<ddl::ring>>;
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<by_size>(team, values); }
#else
using by_size = ddl::selected<ddl::at_most<8, ddl::tree>, ddl::at_most<9, ddl::tree>, ddl::otherwise<ddl::ring>>;
void call(ddl::threads& team, std::vector<float>& values) { ddl::allreduce<by_size>(team, values); }
#endif
