// SPDX-License-Identifier: Apache-2.0
// expect: ddl: NCCL has no such element; pass integers of 1, 4 or 8 bytes or floating values, or call over ddl::cuda_ipc
#include <ddl/nccl.cuh>
#include <ddl/transport/threads.hpp>

#ifdef DDL_WRONG
using element = short;
#else
using element = int;
#endif
void call(ddl::nccl<ddl::threads>& gpus, std::span<element> values) { ddl::allreduce(gpus, values); }
