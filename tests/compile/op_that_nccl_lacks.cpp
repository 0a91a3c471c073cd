// SPDX-License-Identifier: Apache-2.0
// expect: ddl: NCCL has no such op; write ddl::sum, ddl::product, ddl::minimum, ddl::maximum or ddl::average
#include <ddl/nccl.cuh>
#include <ddl/transport/threads.hpp>

#ifdef DDL_WRONG
using op = ddl::bit_and;
#else
using op = ddl::maximum;
#endif
void call(ddl::nccl<ddl::threads>& gpus, std::span<int> values) { ddl::allreduce(gpus, values, op{}); }
