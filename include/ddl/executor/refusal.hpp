// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/transport/carries_calls.hpp>

#include <new>

namespace ddl {

/// This rank cannot make the call that the others make. Lets them know, who would wait for it: they get an error which says
/// so, and the communicator is as good as before. The reason is this rank's own to throw.
template <class Checking, class Transport>
void tell_refusal(Transport& ranks) {
    if constexpr (checking_policy<Checking> && carries_calls<Transport>) {
        if constexpr (!Checking::compares) return;
        try {
            barrier_over<direct, checked>(ranks, collective::refused);
        } catch (const error&) {
            // the news of this rank, which the others get; it has its own
        } catch (const std::bad_alloc&) {  // not even for that is there memory
            const error lack(errc::out_of_memory, to_string(collective::refused), ranks.rank(), -1,
                             "no memory is left");
            ranks.fail(lack.code(), lack.what());
        }
    }
}

/// What `prepare()` gives, without which this rank cannot make the call: if it throws, the others learn.
template <class Checking, class Transport, class Prepare>
auto prepared(Transport& ranks, Prepare prepare) {
    try {
        return prepare();
    } catch (...) {
        tell_refusal<Checking>(ranks);
        throw;
    }
}

}  // namespace ddl
