// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/text.hpp>

#include <exception>

static_assert(sizeof(void*) == 8, "ddl: addresses have 64 bits here; build for x86-64, arm64 or ppc64le");

namespace ddl {

/// What went wrong, in kinds that a program may want to tell apart.
enum class errc : int {
    mismatch = 1,      // ranks called with different counts, types, ops, roots, schedules or in different order
    peer_lost,         // a peer's process has ended
    timeout,           // a peer did not arrive before the deadline
    invalid_argument,  // this rank's own arguments make no sense
    out_of_memory,     // memory that peers can map could not be had
    system,            // the operating system or MPI refused; the message holds its words
    broken,            // an earlier failure left the communicator unusable
    staged = 10,       // a peer that calls through ddl.h asks for chunks; nothing was written
};

/// Every failure of a collective: `operation, rank, round: what is, what was expected, what to do`.
///
/// After `mismatch`, `invalid_argument` and `staged` the communicator is as good as before, and no output was written; so it is where
/// `allreduce_n` had no memory for its copy. After all others it is broken on every surviving rank, and each further call on it throws at once.
/// Visible where symbols are hidden: libc++ tells types apart by an address, and a library's handler catches what another one throws.
class [[gnu::visibility("default")]] error : public std::exception {
public:
    /// `rank` and `round` are -1 where there is none to name. `format` and what follows are as for `printf`.
    [[gnu::format(printf, 6, 7)]] error(errc code, const char* operation, int rank, int round, const char* format,
                                        ...) noexcept
        : code_{code}, operation_{operation}, rank_{rank}, round_{round} {
        what_.append("%s", operation);
        if (rank >= 0) what_.append(", rank %d", rank);
        if (round >= 0) what_.append(", round %d", round);
        what_.append(": ");
        std::va_list arguments;
        va_start(arguments, format);
        what_.append(format, arguments);
        va_end(arguments);
    }

    const char* what() const noexcept override { return what_.c_str(); }
    errc code() const noexcept { return code_; }
    /// The name of the call, such as "allreduce": a string literal.
    const char* operation() const noexcept { return operation_; }
    /// The rank that throws, in its communicator.
    int rank() const noexcept { return rank_; }
    /// The round that was under way, -1 if none was.
    int round() const noexcept { return round_; }

private:
    errc code_;
    const char* operation_;
    int rank_;
    int round_;
    text what_;
};

}  // namespace ddl
