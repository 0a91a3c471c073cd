// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>
#include <ddl/text.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>

namespace ddl::shim::cray {

/// The words of this thread's last failure. They have no destructor, for a program's own may call when this thread's have run.
inline text& last_words() noexcept {
    static thread_local text words;
    return words;
}
static_assert(std::is_trivially_destructible_v<text>);

/// A line on stderr, for whoever called `function`.
inline int failed(const char* function, const char* words) noexcept {
    std::fprintf(stderr, "dl_comm: %s: %s\n", function, words);
    last_words() = text{}.append("%s", words);
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
