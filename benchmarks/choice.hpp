// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tuple>

/// A type, and the name that chooses it at run time.
template <class Type>
struct choice {
    using type = Type;
    std::string_view name;
};

/// Of a list of choices the names: `float|double|int32`.
template <class... Types>
std::string names_of(const std::tuple<choice<Types>...>& choices) {
    std::string names;
    std::apply([&](const auto&... each) { ((names += (names.empty() ? "" : "|"), names += each.name), ...); }, choices);
    return names;
}

/// Calls `use.template operator()<Type>()` with the type of that name. False if the list does not have it.
template <class... Types, class Use>
bool with_choice(const std::tuple<choice<Types>...>& choices, std::string_view name, Use use) {
    const auto use_if_named = [&]<class Type>(const choice<Type>& each) {
        if (each.name != name) return false;
        use.template operator()<Type>();
        return true;
    };
    return std::apply([&](const auto&... each) { return (use_if_named(each) || ...); }, choices);
}
