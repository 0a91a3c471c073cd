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

/// The FNV-1a hash of `words`, but for spaces.
constexpr std::uint32_t words_fingerprint(const char* words) noexcept {
    std::uint32_t hash = 2166136261u;
    for (; *words != '\0'; ++words)
        if (*words != ' ') hash = (hash ^ static_cast<unsigned char>(*words)) * 16777619u;
    return hash;
}

/// A number by which ranks tell whether they were called with the same op, element and schedule: a hash of the spelling.
///
/// Only what follows the first `=` counts, so g++ and clang agree on `ddl::sum` and on `float`. They differ on lambdas, and, from
/// clang 19 on, on templates whose last arguments are defaults: ranks that use those must be built by one compiler. To g++ two
/// lambdas of one signature in one scope have one spelling: a struct with a name is told apart, they are not.
template <class Type>
constexpr std::uint32_t type_fingerprint() noexcept {
    const char* character = spelling<Type>::sentence();
    while (*character != '=') ++character;
    return words_fingerprint(character);
}

}  // namespace ddl
