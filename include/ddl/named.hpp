// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace ddl {

/// `Policy` has a `name`, be it one that cannot be read: not `static`, not `constexpr`, a function, or no C string.
template <class Policy>
concept names_itself = requires { Policy::name; } || requires { &Policy::name; };

/// `Policy` has a `static constexpr const char* name`, by which errors and `explain` call it.
template <class Policy>
concept named = requires { typename std::bool_constant<static_cast<const char*>(Policy::name) != nullptr>; };

/// `Policy` has a `name` that cannot be read. Specialised for what takes the place of another policy.
template <class Policy>
inline constexpr bool misnamed = names_itself<Policy> && !named<Policy>;

}  // namespace ddl
