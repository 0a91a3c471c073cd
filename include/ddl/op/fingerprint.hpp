// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ddl {

/// The compiler's own spelling of `Type`, at the end of a sentence of the compiler's. In a function of the namespace
/// g++ would leave out `ddl::`, so that a user's own `sum` and ours had one spelling; in a class it does not.
template <class Type>
struct spelling {
    static constexpr const char* sentence() noexcept { return __PRETTY_FUNCTION__; }
};

/// A number by which ranks tell whether they were called with the same op and element: the FNV-1a hash of the spelling.
///
/// Only what follows the first `=` is hashed, and no space, so g++ and clang agree on `ddl::sum` and on `float`. They
/// differ on `long` and on lambdas: ranks that use those must be built by one compiler. To g++ two lambdas of one
/// signature in one scope have one spelling: a struct with a name is told apart, they are not.
template <class Type>
constexpr std::uint32_t type_fingerprint() noexcept {
    const char* character = spelling<Type>::sentence();
    while (*character != '=') ++character;
    std::uint32_t hash = 2166136261u;
    for (; *character != '\0'; ++character)
        if (*character != ' ') hash = (hash ^ static_cast<unsigned char>(*character)) * 16777619u;
    return hash;
}

}  // namespace ddl
