// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

/// What tests see and ask of the driver's double, beside the functions of the driver: its symbol `double_of_cuda`.
struct cuda_double {
    std::atomic<int> copies;        // that were asked for
    std::atomic<int> synchronised;  // contexts
    std::atomic<int> pinned;        // regions of host memory, now
    std::atomic<int> made;          // streams and events, now
    std::atomic<int> fails_at;      // the how manyth copy from now fails; 0: none
    std::atomic<int> is_pool;       // whether memory belongs to no context, as that of a pool does
};
extern "C" cuda_double double_of_cuda;
