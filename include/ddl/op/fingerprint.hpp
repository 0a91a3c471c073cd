// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ddl {

/// The compiler's own spelling of `Type`, at the end of a sentence of the compiler's. In a function of the namespace
/// g++ would leave out `ddl::`, so that a user's own `sum` and ours had one spelling; in a class it does not.
template <class Type>
struct spelling {
    static constexpr const char* sentence() noexcept { return __PRETTY_FUNCTION__; }
};

/// What a word of an integer's spelling adds to the sum of them all, which is the same for `long unsigned int` and `unsigned long`; -1 if
/// it is none.
constexpr int part_of_integer(std::string_view word) noexcept {
    return word == "int"        ? 0
           : word == "unsigned" ? 1
           : word == "long"     ? 4
           : word == "short"    ? 16
           : word == "char"     ? 32
           : word == "__int128" ? 64
                                : -1;
}

/// The FNV-1a hash of `words`, but for spaces, and for the order in which a compiler names the parts of an integer.
constexpr std::uint32_t words_fingerprint(std::string_view words) noexcept {
    std::uint32_t hash = 2166136261u;
    const auto take = [&hash](int what) { hash = (hash ^ static_cast<std::uint32_t>(what)) * 16777619u; };
    const auto is_in_names = [](char each) {
        return each == '_' || (each >= '0' && each <= '9') || (each >= 'a' && each <= 'z') ||
               (each >= 'A' && each <= 'Z');
    };
    constexpr std::size_t longest_part = 8;
    constexpr int integer = 256;  // no character is
    int parts = 0;                // of the integer that is being read
    const char* const end = words.data() + words.size();
    for (const char* next = words.data(); next != end;) {  // by pointers, of which compilers evaluate more
        const char* const word = next++;
        if (*word == ' ') continue;
        if (is_in_names(*word))
            while (next != end && is_in_names(*next)) ++next;
        const auto length = static_cast<std::size_t>(next - word);
        if (const int part = length <= longest_part ? part_of_integer({word, length}) : -1; part >= 0) {
            parts = (parts + part) | integer;
            continue;
        }
        if (parts != 0) take(parts);
        parts = 0;
        for (const char* each = word; each != next; ++each) take(static_cast<unsigned char>(*each));
    }
    if (parts != 0) take(parts);
    return hash;
}

/// A number by which ranks tell whether they were called with the same op, element and schedule: a hash of the spelling.
///
/// Only what follows the first `=` counts, so g++ and clang agree on `ddl::sum` and on `float`. They differ on lambdas, on types of an
/// inline or an unnamed namespace, on numbers as arguments that are no `int`, and some versions on templates whose last arguments are
/// defaults: ranks that use those must be built by one compiler. To g++ two lambdas of one signature in one scope have one spelling:
/// a struct with a name is told apart, they are not.
template <class Type>
constexpr std::uint32_t type_fingerprint() noexcept {
    const char* character = spelling<Type>::sentence();
    while (*character != '=') ++character;
    return words_fingerprint(character);
}

}  // namespace ddl
