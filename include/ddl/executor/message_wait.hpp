// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>
#include <ddl/transport/patience.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace ddl {

/// Tags of a call's messages. A transport may use those from 16 on for itself.
enum class message_tag : int { contract = 1, payload = 2, agreement = 3, behind_mark = 4 };

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
        const error failure(errc::timeout, where_.operation, called(wire_, wire_.rank()), where_.round,
                            "rank %d did not answer within %g s; see what holds it up, or set a longer timeout",
                            called(wire_, peer), waiting_.limit());
        wire_.fail(errc::timeout, failure.what());
        throw failure;
    }

private:
    /// Each turn is a look at the network, and long enough, unless all ranks are near and nobody else wants this core.
    patience afresh() const noexcept {
        if constexpr (requires { Transport::looks_before_sleep; })
            return patience{wire_.limit(), patience::crowded, Transport::looks_before_sleep};
        if constexpr (requires { wire_.uncrowded(); })
            if (wire_.uncrowded()) return patience{wire_.limit()};
        return patience{wire_.limit(), patience::crowded, patience::short_stay};
    }

    Transport& wire_;
    const call_site& where_;
    patience waiting_;
};

/// One message under way, or none. Gives up on it if it goes before its end.
template <message_transport Transport>
class pending_message {
public:
    explicit pending_message(Transport& wire) noexcept : wire_{wire}, done_{true} {}
    pending_message(Transport& wire, int peer, typename Transport::ticket message)
        : wire_{wire}, peer_{peer}, message_{std::move(message)} {}
    pending_message(const pending_message&) = delete;
    pending_message& operator=(const pending_message&) = delete;
    ~pending_message() {
        if (!done_) wire_.cancel(message_);
    }
    /// Where there is none yet.
    void begin(int peer, typename Transport::ticket message) {
        peer_ = peer;
        message_ = std::move(message);
        done_ = false;
    }
    [[gnu::always_inline]] bool has_ended() { return done_ || (done_ = wire_.test(message_)); }
    [[gnu::always_inline]] void complete(const call_site& where) {
        if (has_ended()) return;
        message_wait<Transport> waiting{wire_, where};
        while (!(done_ = wire_.test(message_))) waiting.pause(peer_);
    }
    const typename Transport::ticket& message() const noexcept { return message_; }

private:
    Transport& wire_;
    int peer_ = -1;
    typename Transport::ticket message_;
    bool done_ = false;
};

/// Up to `Most` messages under way. Gives up on those that have not ended when it goes.
template <message_transport Transport, std::size_t Most>
class pending_messages {
    using message = pending_message<Transport>;

public:
    explicit pending_messages(Transport& wire) noexcept : wire_{wire} {}
    pending_messages(const pending_messages&) = delete;
    pending_messages& operator=(const pending_messages&) = delete;
    ~pending_messages() { std::destroy_n(&at(0), count_); }

    void send(int peer, const std::byte* data, std::size_t bytes, message_tag tag) {
        add(peer, wire_.send(peer, data, bytes, static_cast<int>(tag)));
    }
    void receive(int peer, std::byte* data, std::size_t bytes, message_tag tag) {
        add(peer, wire_.receive(peer, data, bytes, static_cast<int>(tag)));
    }
    void add(int peer, typename Transport::ticket posted) {
        ::new (static_cast<void*>(&at(count_))) message{wire_, peer, std::move(posted)};
        ++count_;
    }
    const typename Transport::ticket& operator[](std::size_t index) noexcept { return at(index).message(); }
    std::size_t count() const noexcept { return count_; }
    bool has_ended(std::size_t index) { return at(index).has_ended(); }

    /// Waits until the first `count` have ended.
    void complete(std::size_t count, const call_site& where) {
        for (; ended_ < count; ++ended_) at(ended_).complete(where);
    }
    void complete(const call_site& where) { complete(count_, where); }

private:
    message& at(std::size_t index) noexcept { return reinterpret_cast<message*>(room_)[index]; }

    Transport& wire_;
    std::size_t count_ = 0;
    std::size_t ended_ = 0;
    alignas(message) std::byte room_[Most * sizeof(message)];
};

}  // namespace ddl
