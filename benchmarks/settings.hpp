// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

/// Buffers begin at a multiple of this, or an offset behind it.
inline constexpr std::size_t page_bytes = 4096;

/// The command line asks for what cannot be.
struct usage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What a run is asked to do, and what it does when not asked.
struct settings {
    std::string transport = "threads";
    std::optional<int> ranks;
    std::string schedule = "tuned";
    std::string element = "float";
    std::string op = "sum";
    std::size_t min_bytes = 4;
    std::size_t max_bytes = std::size_t{16} << 20;
    std::size_t factor = 4;
    int warmup = 5;
    int iterations = 20;
    double seconds = 0;  // for each row; 0: count calls
    bool mapped = false;
    bool in_place = true;
    bool out_of_place = true;
    std::size_t offset = 1;
    bool check = true;
    bool against_mpi = false;
    std::string json;

    /// From `min_bytes` to `max_bytes`.
    std::vector<std::size_t> sizes() const {
        std::vector<std::size_t> all;
        for (std::size_t bytes = min_bytes; bytes <= max_bytes; bytes *= factor) {
            all.push_back(bytes);
            if (bytes > max_bytes / factor) break;
        }
        return all;
    }
    /// Where buffers begin, in elements after the start of a page.
    std::vector<std::size_t> offsets() const {
        return offset == 0 ? std::vector<std::size_t>{0} : std::vector<std::size_t>{0, offset};
    }
};
