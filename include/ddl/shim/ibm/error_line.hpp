// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <source_location>
#include <unistd.h>

namespace ddl::shim {

/// The numbers that IBM DDL gives its messages.
enum class message : int { cuda = 2, mpi = 5, ddl = 6 };

/// Writes the line of a failure to stderr, `[ERROR DDL-1-6] words (host name)`, and returns its status. With DDL_DEBUG=1 the
/// line begins with the place in the source.
inline int failed(ddl_status status, const char* words,
                  std::source_location where = std::source_location::current()) noexcept {
    if (status == DDL_OK) return status;
    char host[256] = "unknown";
    ::gethostname(host, sizeof host - 1);
    const char* const debug = std::getenv("DDL_DEBUG");  // NOLINT(concurrency-mt-unsafe): nothing here sets it
    if (debug != nullptr && std::strcmp(debug, "1") == 0)
        std::fprintf(stderr, "[DDL DEBUG] %s:%u ", where.file_name(), static_cast<unsigned>(where.line()));
    const message kind = std::strstr(words, "MPI") != nullptr ? message::mpi : message::ddl;
    std::fprintf(stderr, "[ERROR DDL-1-%d] %s (host %s)\n", static_cast<int>(kind), words, host);
    return status;
}

}  // namespace ddl::shim
