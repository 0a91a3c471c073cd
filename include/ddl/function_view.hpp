// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>

namespace ddl {

template <class Signature>
class function_view;

/// A function that a caller keeps, whatever its type: what calls it is compiled once for all of them.
template <class Result, class... Arguments>
class function_view<Result(Arguments...)> {
public:
    template <class Function>
        requires std::is_invocable_r_v<Result, const Function&, Arguments...>
    function_view(const Function& function) noexcept
        : kept_{std::addressof(function)}, call_{[](const void* kept, Arguments... arguments) -> Result {
              return (*static_cast<const Function*>(kept))(arguments...);
          }} {}

    Result operator()(Arguments... arguments) const { return call_(kept_, arguments...); }

private:
    const void* kept_;
    Result (*call_)(const void*, Arguments...);
};

}  // namespace ddl
