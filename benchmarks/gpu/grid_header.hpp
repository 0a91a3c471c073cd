// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/grid_limits.hpp>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

/// Writes the grids that suit `machine` to the file `path`, as a header that programs include. Throws if it cannot.
inline void write_grid_header(const char* path, const std::string& machine, const std::vector<ddl::grid_row>& grids) {
    std::ofstream file{path};
    file
        << "// Grids of ddl for " << machine
        << ", written by benchmarks/gpu/run: the smallest whose float, bfloat16 and\n"
           "// float8_e4m3 sums take at most 3 % longer than those of the quickest. All ranks shared one GPU.\n"
           "// Include it in every source file of every program of a job. Ranks of which some go without it get an error.\n"
           "#pragma once\n\n#include <ddl/executor/grid_limits.hpp>\n\nnamespace ddl {\nclass cuda_peer;\n}  // namespace ddl\n\n"
           "template <>\ninline constexpr ddl::grid_limits ddl::grid_limits_of<ddl::cuda_peer>{\n    .grids = {\n";
    for (const ddl::grid_row& row : grids)
        file << "        {.ranks = " << row.ranks << ", .bytes = " << row.bytes << ", .blocks = " << row.blocks
             << "},\n";
    file << "    }};\n";
    if (!file.flush()) throw std::runtime_error(std::string{path} + " cannot be written");
}
