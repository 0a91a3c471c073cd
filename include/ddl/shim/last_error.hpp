// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/task.hpp>

#include <cstring>

namespace ddl::shim {

/// The words of this thread's last failure.
inline text& last_error() noexcept {
    static thread_local text words;
    return words;
}

/// Failures of this thread go there.
inline constexpr listener this_thread{
    [](void*, ddl_status, const char* words) noexcept { last_error() = text{}.append("%s", words); }, nullptr};

/// A failure of this rank's own making: `operation, rank: what is, what was expected, what to do`.
template <class... Words>
ddl_status refused(ddl_status status, const char* operation, int rank, const char* format, Words... words) noexcept {
    if constexpr (sizeof...(words) == 0) return refused(status, operation, rank, "%s", format);
    else return this_thread(status, error(static_cast<errc>(status), operation, rank, -1, format, words...).what());
}

/// A failure of `operation`, which the program has called: the words of this thread's last one name a function that it called in turn.
inline ddl_status told_of(const char* operation, ddl_status status) noexcept {
    if (status == DDL_OK) return status;
    const text words = last_error();
    last_error() = text{}.append("%s%s", operation, words.c_str() + std::strcspn(words.c_str(), ",:"));
    return status;
}

}  // namespace ddl::shim
