// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no execution policy of Thrust's device system; write team.on(thrust::device), or pass team
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include <ddl/transport/device_team.cuh>

#ifdef DDL_WRONG
void call(ddl::device_team& team) { team.on(thrust::seq).wait(); }
#else
void call(ddl::device_team& team) { team.on(thrust::device).wait(); }
#endif
