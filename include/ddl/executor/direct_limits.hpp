// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ddl {

/// Sizes in bytes at which the schedule `direct` over memory changes its way.
struct direct_limits {
    /// The longest vector of which every rank folds everything, where peers cannot map it.
    std::size_t one_shot = 4096;
    /// The shortest vector that is folded where it lies, where all peers can map it.
    std::size_t mapped = 1024;
    /// The same where blocks only move: a rank has to wait for its readers then.
    std::size_t mapped_move = 8192;
    /// What a rank stages of a block at a time: it is to be read before it leaves the second-level cache.
    std::size_t segment = std::size_t{1} << 16;
};

/// The limits of a transport. Specialise it for a machine, in every program of a job alike:
/// `template <> inline constexpr ddl::direct_limits ddl::limits_of<ddl::shared_memory>{.one_shot = 4096;`
template <class Transport>
inline constexpr direct_limits limits_of{};

}  // namespace ddl
