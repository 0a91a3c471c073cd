// SPDX-License-Identifier: Apache-2.0
// expect: ddl: NCCL chooses its schedule itself; name none
#include <ddl/allreduce.hpp>

#include "library.hpp"

#ifdef DDL_WRONG
void call(library& gpus, std::vector<float>& values) { ddl::allreduce<ddl::ring>(gpus, values); }
#else
void call(library& gpus, std::vector<float>& values) { ddl::allreduce(gpus, values); }
#endif
