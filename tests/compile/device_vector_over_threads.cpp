// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this range lies in a device, and these ranks know the host's memory alone; wrap them in ddl::staged, or pass a span
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include <ddl/allreduce.hpp>
#include <ddl/transport/device_team.cuh>

#include <thrust/device_vector.h>

#include <span>

using device_floats = thrust::device_vector<float>;

#ifdef DDL_WRONG
void call(ddl::threads& team, const device_floats& in, device_floats& out) { ddl::allreduce(team, in, out); }
#else
void call(ddl::device_team& team, const device_floats& in, device_floats& out) { ddl::allreduce(team, in, out); }
void call(ddl::threads& team, std::span<float> data) { ddl::allreduce(team, data); }
#endif
