// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace ddl::shim {

/// A place in the source. As a default argument `here()` is the caller's; clang 14 has no std::source_location yet.
struct place {
    const char* file;
    int line;
    static constexpr place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
        return {file, line};
    }
};

/// The numbers that IBM DDL gives its messages.
enum class message : int { cuda = 2, mpi = 5, ddl = 6 };

/// Writes the line of a failure to stderr, `[ERROR DDL-1-6] words (host name)`, and returns its status. With DDL_DEBUG=1 the
/// line begins with the place in the source.
inline int failed(ddl_status status, const char* words, place where = place::here()) noexcept {
    if (status == DDL_OK) return status;
    char host[256] = "unknown";
    ::gethostname(host, sizeof host - 1);
    const char* const debug = std::getenv("DDL_DEBUG");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
    if (debug != nullptr && std::strcmp(debug, "1") == 0)
        std::fprintf(stderr, "[DDL DEBUG] %s:%d ", where.file, where.line);
    // by their word, and not by a mistake in which that stands
    const bool by_mpi = status == DDL_SYSTEM && std::strstr(words, "MPI") != nullptr;
    const bool by_cuda = (status == DDL_SYSTEM || status == DDL_OUT_OF_MEMORY) && std::strstr(words, "CUDA") != nullptr;
    const message kind = by_cuda ? message::cuda : by_mpi ? message::mpi : message::ddl;
    std::fprintf(stderr, "[ERROR DDL-1-%d] %s (host %s)\n", static_cast<int>(kind), words, host);
    return status;
}

}  // namespace ddl::shim
