// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

// LLVM 15 has one, and does not say so
#if !defined(__cpp_lib_constexpr_vector) && (!defined(_LIBCPP_VERSION) || _LIBCPP_VERSION < 15000)
static_assert(
    false, "ddl: this standard library has no constexpr std::vector; take that of g++ 12, of LLVM 15, or a later one");
#endif

namespace ddl {

/// What a proof keeps its values in: with libstdc++'s checks the vector without them, for a compiler evaluates no other.
#if defined(__GLIBCXX__) && defined(_GLIBCXX_DEBUG)
template <class T>
using proof_vector = std::_GLIBCXX_STD_C::vector<T>;
#else
template <class T>
using proof_vector = std::vector<T>;
#endif

}  // namespace ddl
