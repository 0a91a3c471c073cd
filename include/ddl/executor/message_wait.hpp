// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>
#include <ddl/transport/patience.hpp>

namespace ddl {

/// Tags of a call's messages. A transport may use others for itself.
enum class message_tag : int { contract = 1, payload = 2 };

/// A wait for messages. Everything that a rank waits for passes here, so no wait is without a deadline.
template <message_transport Transport>
class message_wait {
public:
    message_wait(Transport& wire, const call_site& where) noexcept : wire_{wire}, where_{where}, waiting_{afresh()} {}

    /// Something has come: the next wait begins.
    void restart() noexcept { waiting_ = afresh(); }

    /// Nothing has come: lets some time pass. Throws when a peer has announced a failure, or when `peer` has taken too long.
    void pause(int peer) {
        if (!waiting_.pause()) return;
        wire_.listen(where_);
        if (!waiting_.expired()) return;
        const error failure(errc::timeout, where_.operation, wire_.rank(), where_.round,
                            "rank %d did not answer within %g s; see what holds it up, or set a longer timeout", peer,
                            waiting_.limit());
        wire_.fail(errc::timeout, failure.what());
        throw failure;
    }

private:
    /// Each turn is a look at the network, and long enough, unless all ranks are near and nobody else wants this core.
    patience afresh() const noexcept {
        if constexpr (requires { wire_.uncrowded(); })
            if (wire_.uncrowded()) return patience{wire_.limit()};
        return patience{wire_.limit(), patience::crowded, patience::short_stay};
    }

    Transport& wire_;
    const call_site& where_;
    patience waiting_;
};

/// One message under way. Gives up on it if it goes before its end.
template <message_transport Transport>
class pending_message {
public:
    pending_message(Transport& wire, int peer, typename Transport::ticket message)
        : wire_{wire}, peer_{peer}, message_{std::move(message)} {}
    pending_message(const pending_message&) = delete;
    pending_message& operator=(const pending_message&) = delete;
    ~pending_message() {
        if (!done_) wire_.cancel(message_);
    }
    void complete(const call_site& where) {
        message_wait<Transport> waiting{wire_, where};
        while (!(done_ = done_ || wire_.test(message_))) waiting.pause(peer_);
    }

private:
    Transport& wire_;
    int peer_;
    typename Transport::ticket message_;
    bool done_ = false;
};

}  // namespace ddl
