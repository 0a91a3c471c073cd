// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <cstdio>
#include <exception>
#include <string>

namespace ddl::shim::cray {

/// The words of this thread's last failure.
inline std::string& last_words() {
    static thread_local std::string words;
    return words;
}

/// A line on stderr, for whoever called `function`.
inline int failed(const char* function, const char* words) noexcept {
    std::fprintf(stderr, "dl_comm: %s: %s\n", function, words);
    try {
        last_words() = words;
    } catch (const std::exception&) { last_words().clear(); }
    return -1;
}
inline int failed(const char* function, const std::string& words) noexcept { return failed(function, words.c_str()); }
inline int outcome(const char* function, ddl_status status) noexcept {
    return status == DDL_OK ? 0 : failed(function, ddl_last_error());
}

/// Runs `body`; between C and here nothing is thrown.
template <class Body>
int guarded(const char* function, Body body) noexcept {
    try {
        return body();
    } catch (const std::exception& failure) { return failed(function, failure.what()); }
}

}  // namespace ddl::shim::cray
