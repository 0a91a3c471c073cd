// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_status.cuh>

#include <cstdio>
#include <exception>

/// What ctest takes for "skipped".
inline constexpr int skipped = 77;

/// Runs a test that needs a GPU; without one it says so, by name and reason. The status of `main`.
template <class Body>
int on_a_gpu(const char* name, Body body) {
    try {
        ddl::require_devices(name);
    } catch (const ddl::error& reason) {
        std::printf("skipped: %s\n", reason.what());
        return skipped;
    }
    try {
        body();
    } catch (const std::exception& failure) {
        std::printf("%s failed: %s\n", name, failure.what());
        return 1;
    }
    std::printf("%s: all is as expected\n", name);
    return 0;
}
