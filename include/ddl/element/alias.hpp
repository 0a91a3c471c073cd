// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ddl {

/// The element of ours that has the bits of `Element`, a type of a vendor's: `Element` itself if there is none. Specialise it
/// to have one set of loops for both names, and ranks agree that use either.
template <class Element>
struct alias_of {
    using type = Element;
};

/// Whether kernels can compute with `Element`: where they cannot, an op must take its alias.
template <class Element>
inline constexpr bool computed_by_kernels = true;

}  // namespace ddl
