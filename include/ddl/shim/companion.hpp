// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/backend.hpp>

namespace ddl::shim {

/// What a library that needs MPI offers to one that must load without: its openers, and MPI's start and end.
///
/// The library `companion` is looked for beside the one that asks, when MPI runs in the process or a launcher of MPI started
/// it. It exports `ddl_companion`, which returns nullptr to a library of another build.
struct companion {
    const opener* openers;
    std::size_t count;
    bool (*is_up)() noexcept;
    ddl_status (*world_rank)(int* rank, const listener& heard) noexcept;
    ddl_status (*finalize)(const listener& heard) noexcept;
};

/// Changes with everything that a library and its companion hand each other.
inline constexpr const char* companion_build = "ddl 0.1.0, interface 4";

/// The companion; nullptr if there is none, with the reason in `why`.
const companion* load_companion(text& why) noexcept;
/// Whether an MPI library of this process is started and not ended, whichever it is. Loads nothing.
bool mpi_is_up() noexcept;
/// Whether an MPI library is loaded at all.
bool mpi_is_loaded() noexcept;
/// Whether a launcher of MPI started this process.
bool launched_by_mpi() noexcept;
/// What the environment says of a variable; "" if nothing.
const char* value_of(const char* variable) noexcept;
/// Whether the ranks that the environment names are those of MPI: what DDL_TRANSPORT says, else what the process looks like. Who
/// meets them goes by it, and who tells their numbers before.
bool ranks_are_of_mpi() noexcept;
/// How many processes a launcher of MPI has started that ddlrun itself has started as a single rank, in words; nullptr if none has.
const char* ranks_inside_of_one() noexcept;

}  // namespace ddl::shim

extern "C" const ddl::shim::companion* ddl_companion(const char* build) noexcept;
/// Of the library that has a companion: its `ddl_last_error` says so from now on, on this thread.
extern "C" void ddl_keep_error(const char* words) noexcept;
