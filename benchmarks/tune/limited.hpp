// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/direct_limits.hpp>

#include <utility>

namespace tune {

/// A transport of memory whose calls go by `Limits`. It takes over the communicator that it is made from.
template <class Base, ddl::direct_limits Limits>
class limited : public Base {
public:
    explicit limited(Base&& from) : Base{std::move(from)} {}
};

}  // namespace tune

template <class Base, ddl::direct_limits Limits>
inline constexpr ddl::direct_limits ddl::limits_of<tune::limited<Base, Limits>> = Limits;
