// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program with a line unless `holds`.
inline void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::exit(1);
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__)
