// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>

#include <stdexcept>
#include <string>

/// Throws in the thread of a rank, for Boost.Test belongs to the thread that runs the cases.
inline void require(bool fact, const std::string& otherwise) {
    if (!fact) throw std::runtime_error(otherwise);
}

/// The error that `body` ends in, and `no_error` if it ends well.
inline constexpr ddl::errc no_error{};

template <class Body>
ddl::error error_of(Body body) {
    try {
        body();
    } catch (const ddl::error& failure) { return failure; }
    return {no_error, "nothing", -1, -1, "went well"};
}

/// `body` must end in an error of this code whose text contains `words`.
template <class Body>
void require_error(ddl::errc code, const std::string& words, Body body) {
    const ddl::error failure = error_of(body);
    const std::string text = failure.what();
    require(text.find(words) != std::string::npos, "wanted '" + words + "', got '" + text + "'");
    require(failure.code() == code, "another code: '" + text + "'");
}
