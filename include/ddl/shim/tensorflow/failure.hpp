// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/shim/ddl.h>
#include <ddl/shim/tensorflow/c_api.hpp>

#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace ddl::shim::tensorflow {

/// What TensorFlow is told of a status of ddl.
constexpr code code_of(ddl_status status) noexcept {
    switch (status) {
        case DDL_MISMATCH:
        case DDL_INVALID_ARGUMENT: return invalid_argument;
        case DDL_TIMEOUT: return deadline_exceeded;
        case DDL_OUT_OF_MEMORY: return resource_exhausted;
        case DDL_BROKEN: return failed_precondition;
        case DDL_UNSUPPORTED: return unimplemented;
        case DDL_INTERRUPTED: return cancelled;
        default: return internal;
    }
}

/// Why an operator could not be carried out.
class failure : public std::exception {
public:
    failure(code kind, std::string words) : kind_{kind}, words_{std::move(words)} {}

    /// `operation, rank: what is, what was expected, what to do`; the rank is -1 where there is none to name.
    template <class... Words>
    static failure refused(code kind, const char* operation, int rank, const char* format, Words... words) {
        if constexpr (sizeof...(words) == 0) return refused(kind, operation, rank, "%s", format);
        else return {kind, error(errc::invalid_argument, operation, rank, -1, format, words...).what()};
    }

    const char* what() const noexcept override { return words_.c_str(); }
    code kind() const noexcept { return kind_; }

private:
    code kind_;
    std::string words_;
};

/// Throws unless ddl has done what it was asked for.
inline void require(ddl_status status) {
    if (status != DDL_OK) throw failure{code_of(status), ddl_last_error()};
}
/// The same where an operator of another name has asked: the words begin with that in place of the name of the function.
inline void require(ddl_status status, const char* operation) {
    if (status == DDL_OK) return;
    const char* const words = ddl_last_error();
    throw failure{code_of(status), std::string{operation}.append(words + std::strcspn(words, ",:"))};
}

}  // namespace ddl::shim::tensorflow
