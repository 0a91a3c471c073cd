// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract_load.hpp>
#include <ddl/executor/message_wait.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ddl {

/// Whether `wire` has two ranks, whose messages bear marks.
template <message_transport Transport>
[[gnu::always_inline]] inline bool is_marked_pair(const Transport& wire) noexcept {
    if constexpr (marking_transport<Transport>) return wire.size() == 2 && wire.marks();
    else return false;
}

/// The first message of a rank to another in a contract: it says what the rank calls.
///
/// It does so in a head, behind which payload may ride. Where messages bear marks, one whose rank knows of no difference is the
/// payload alone: its mark stands for the call, so a library that sends few bytes in a quicker way sends as many of payload in
/// that way. A head alone then has the mark 0. Room for it lies before each body.
template <message_transport Transport>
class contract_message {
    using ticket = typename Transport::ticket;

public:
    static constexpr std::size_t before = sizeof(contract_head);  // bytes before a body

    /// Of a contract in which payload may ride, or one whose payload follows in pieces, that are awaited at the same time.
    contract_message(const Transport& wire, bool rides) noexcept {
        if constexpr (marking_transport<Transport>) marks_ = wire.marks();
        if (marks_ && rides) head_ = 0;
    }

    /// Sends what a rank says, and behind it `riding` bytes of `body`.
    [[gnu::always_inline]] ticket send(Transport& wire, int peer, std::byte* body, const contract_head& says,
                                       std::size_t riding) const {
        put(body, says);
        return send_put(wire, peer, body, says, riding);
    }
    /// The same in two: what is put before a body once can be sent to many.
    [[gnu::always_inline]] void put(std::byte* body, const contract_head& says) const noexcept {
        if (!is_mark(says)) std::memcpy(body - before, &says, before);  // a body of gathered blocks begins anywhere
    }
    [[gnu::always_inline]] ticket send_put(Transport& wire, int peer, const std::byte* body, const contract_head& says,
                                           std::size_t riding) const {
        if constexpr (marking_transport<Transport>) {
            if (is_mark(says)) return wire.send_marked(peer, body, riding, mark_of(says.call));
            if (marks_) return wire.send_marked(peer, body - before, before, 0);
        }
        return wire.send(peer, body - before, before + riding, tag);
    }

    /// Awaits one. Only a mismatch fills more of `body` than it should: up to `longest_message` bytes.
    [[gnu::always_inline]] ticket receive(Transport& wire, int peer, std::byte* body) const {
        if constexpr (marking_transport<Transport>)
            if (marks_) return wire.receive_marked(peer, body - head_, head_ + longest_message);
        return wire.receive(peer, body - before, before + longest_message, tag);
    }

    /// What one that has been `received` says to a rank that calls `ours`.
    contract_head read(const Transport& wire, const ticket& received, const std::byte* body,
                       std::uint64_t ours) const noexcept {
        if constexpr (marking_transport<Transport>)
            if (marks_)
                if (const std::uint32_t mark = wire.mark_of(received); mark != 0)
                    return {mark == mark_of(ours) ? ours : ~ours, 0, 0};
        contract_head says;
        std::memcpy(&says, body - head_, sizeof says);
        return says;
    }

    /// Equal for equal calls; of others one in 2^28 meets it.
    static std::uint32_t mark_of(std::uint64_t call) noexcept {
        const auto mark = static_cast<std::uint32_t>(call >> (64 - mark_bits));
        return mark != 0 ? mark : 1;
    }

private:
    static constexpr int tag = static_cast<int>(message_tag::contract);

    bool is_mark(const contract_head& says) const noexcept { return marks_ && says.differ == 0 && says.pieces == 0; }

    bool marks_ = false;
    std::size_t head_ = before;  // bytes of a body before which a head is received
};

}  // namespace ddl
