// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract_load.hpp>
#include <ddl/executor/message_lanes.hpp>
#include <ddl/executor/message_wait.hpp>

#include <cstddef>

namespace ddl {

/// Scratch of a contract. A head lies before each body. What a rank sends whose call is another may be longer than expected.
///
/// In rounds two messages take turns, of which one is sent while the other arrives. Directly one arrives from each rank, and
/// blocks for each may leave from slots in `own`. Bodies that are folded lie half a page apart, modulo pages, or each a little
/// below the one before: a fold is slow where it stores just above what it loads.
struct contract_room {
    static constexpr std::size_t alignment = 64;  // of bodies

    std::byte* own;  // bodies
    std::byte* other;
    std::byte* first_arrival;

    template <class Transport>
    [[gnu::always_inline]] contract_room(Transport& wire, std::size_t bytes) {
        const std::size_t body = bytes + longest_message;
        const std::size_t message = (before + body + page - 1) / page * page + page / 2;
        const int ranks = wire.size();
        const std::size_t arrivals = ranks <= most_direct_ranks ? static_cast<std::size_t>(ranks) * arriving : 0;
        own = wire.scratch(2 * message + arrivals) + before;
        other = own + message;
        first_arrival = other + message;
    }

    /// Bytes to ask for where `bytes` of blocks lie in a room, and those of them that leave beside them.
    static constexpr std::size_t with_packed(std::size_t bytes) noexcept { return 2 * whole_lines(bytes); }
    /// Where these are packed: a message may still be on its way when the places of its blocks are taken.
    std::byte* packed_behind(std::size_t bytes) const noexcept { return own + whole_lines(bytes) + before; }

    /// Bytes to ask for where blocks of up to `longest` bytes leave for `ranks` ranks.
    static constexpr std::size_t with_slots(int ranks, std::size_t longest) noexcept {
        return static_cast<std::size_t>(ranks) * (before + whole_lines(longest));
    }
    /// Where the one for `rank` does.
    std::byte* slot(int rank, std::size_t longest) const noexcept { return own + with_slots(rank, longest); }
    /// Where what `rank` sends arrives, if all send to all; what this rank sends to all leaves from its own.
    std::byte* arrival(int rank) const noexcept { return first_arrival + static_cast<std::size_t>(rank) * arriving; }

private:
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t before = whole_lines(sizeof(contract_head));
    static constexpr std::size_t arriving = (before + longest_message + page) / page * page + page - 3 * 64;
};

/// What a rank sends of a payload in one message, behind whose head it rides.
struct riding_part {
    std::byte* body;
    std::size_t bytes;
};

/// Takes the pieces of a payload that are not wanted: `count` of them.
template <message_transport Transport>
void discard_pieces(Transport& wire, int peer, std::size_t count, std::byte* room, const call_site& where,
                    message_tag tag = message_tag::contract) {
    for (; count > 0; --count) {
        pending_messages<Transport, 1> unwanted{wire};
        unwanted.receive(peer, room, longest_message, tag);
        unwanted.complete(where);
    }
}

}  // namespace ddl
