// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace ddl {

/// How device memory passes through the host: in chunks of so many bytes, on so many streams. Of 0 bytes: in an eighth of what passes,
/// but from 1 to 4 MiB, for the first chunk to be early and few to be waited for.
struct staging_shape {
    static constexpr int most_kilobytes = 1'000'000;
    static constexpr int most_streams = 1024;

    std::size_t chunk_bytes = 0;
    int streams = 4;

    /// Bytes of a chunk where `bytes` pass.
    constexpr std::size_t chunk_of(std::size_t bytes) const noexcept {
        constexpr std::size_t mebi = std::size_t{1} << 20, step = std::size_t{1} << 16;
        return chunk_bytes != 0 ? chunk_bytes : std::clamp(bytes / 8 / step * step, mebi, 4 * mebi);
    }

    /// What DL_COMM_PIPELINE_CHUNK_KB and DL_COMM_NUM_CUDA_STREAMS say; a variable that is not set changes nothing.
    static staging_shape from_environment() {
        staging_shape shape;
        shape.chunk_bytes = number("DL_COMM_PIPELINE_CHUNK_KB", most_kilobytes, 0) * 1024;
        shape.streams =
            static_cast<int>(number("DL_COMM_NUM_CUDA_STREAMS", most_streams, static_cast<std::size_t>(shape.streams)));
        return shape;
    }

private:
    static std::size_t number(const char* variable, int most, std::size_t otherwise) {
        const char* const words = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets it
        if (words == nullptr || *words == '\0') return otherwise;
        char* end = nullptr;
        const long value = std::strtol(words, &end, 10);
        if (*end != '\0' || value < 1 || value > most)
            throw error(errc::invalid_argument, "staged", -1, -1, "%s is \"%.40s\"; it takes a number from 1 to %d",
                        variable, words, most);
        return static_cast<std::size_t>(value);
    }
};

}  // namespace ddl
