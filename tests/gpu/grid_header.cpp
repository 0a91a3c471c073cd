// SPDX-License-Identifier: Apache-2.0
// grid_header FILE: writes what benchmarks/gpu/run writes for a machine. Compiled again with WRITTEN, that file's name: a program
// that includes it has these grids.
#include "../../benchmarks/gpu/grid_header.hpp"

#include <cstdio>

constexpr ddl::grid_row sample[] = {{2, 1 << 20, 7}, {2, 64 << 20, 66}, {8, std::size_t{5} << 30, 16}};

#ifdef WRITTEN
#include WRITTEN
#include WRITTEN  // it guards itself
static_assert([] {
    constexpr ddl::grid_limits limits = ddl::grid_limits_of<ddl::cuda_peer>;
    for (int i = 0; i < 4; ++i) {
        const ddl::grid_row wanted = i < 3 ? sample[i] : ddl::grid_row{};
        const ddl::grid_row row = limits.grids[i];
        if (row.ranks != wanted.ranks || row.bytes != wanted.bytes || row.blocks != wanted.blocks) return false;
    }
    return limits.threads == ddl::grid_limits{}.threads;
}());
#endif

int main(int count, char** words) {
    try {
        write_grid_header(count > 1 ? words[1] : "", "a sample", {std::begin(sample), std::end(sample)});
    } catch (const std::exception& failure) {
        std::puts(failure.what());
        return 1;
    }
}
