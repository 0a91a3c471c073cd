// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>

#include <cstdio>
#include <exception>
#include <optional>

namespace ddl {

/// Why a rank left a collective half done, in a form that travels between ranks.
struct fault {
    errc code{};
    char words[text::capacity + 1] = {};

    fault() = default;
    fault(errc why, const char* explanation) noexcept : code{why} {
        std::snprintf(words, sizeof words, "%.*s", static_cast<int>(text::capacity), explanation);
    }
};

/// What a rank throws because of another's fault, of which it has heard.
struct peers_fault : error {
    explicit peers_fault(const error& heard) noexcept : error{heard} {}
};

/// What a rank throws that learns of a peer's fault.
inline peers_fault peer_gave_up(const fault& known, const call_site& where, int rank) noexcept {
    return peers_fault{error(known.code, where.operation, rank, where.round, "a peer gave up [%s]", known.words)};
}

/// What it throws from then on.
inline peers_fault still_broken(const fault& known, const call_site& where, int rank) noexcept {
    return peers_fault{error(errc::broken, where.operation, rank, where.round,
                             "the communicator is broken since an earlier call [%s]", known.words)};
}

/// What a rank throws of a call that does not begin, for the arguments of another one make no sense.
inline error senseless_elsewhere(const call_site& where, int rank) noexcept {
    return error(errc::mismatch, where.operation, rank, where.round,
                 "a rank has called with invalid arguments; see its own error");
}

/// What a rank throws that has waited its time for `peer`.
inline error did_not_arrive(const call_site& where, int rank, int peer, double seconds) noexcept {
    return error(errc::timeout, where.operation, rank, where.round,
                 "rank %d did not arrive within %g s; see what holds it up, or set a longer timeout", peer, seconds);
}
/// The same for its grid.
inline error grid_did_not_arrive(const call_site& where, int rank, int peer, double seconds) noexcept {
    return error(errc::timeout, where.operation, rank, where.round,
                 "the grid of rank %d did not arrive within %g s; see what holds it up, or set a longer timeout", peer,
                 seconds);
}

/// What a communicator throws that has been moved from.
[[gnu::cold, gnu::noinline]] inline error moved_from(const call_site& where, int rank) noexcept {
    return error(errc::broken, where.operation, rank, where.round,
                 "this communicator was moved from; use the one it moved to");
}

/// What `work` throws; nothing if it ends well. What is no error of ours is taken for a lack of memory. For ranks that must
/// go on together whatever befalls one.
template <class Work>
std::optional<error> failure_of(const call_site& where, int rank, const Work& work) {
    try {
        work();
    } catch (const error& known) { return known; } catch (const std::exception& unknown) {
        return error(errc::out_of_memory, where.operation, rank, where.round, "%s", unknown.what());
    }
    return std::nullopt;
}

}  // namespace ddl
