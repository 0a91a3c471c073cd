// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/threads.hpp>

#include <vector>

/// What `ddl::nccl` is to the compiler, where NCCL is not installed.
struct library : ddl::threads {
    static constexpr bool chooses_schedule = true;
};
