// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/transport/patience.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ddl {

/// Where a rank is in the code, for the errors that a wait may end in.
struct call_site {
    const char* operation;
    int round = -1;
};

/// Bytes that a communicator keeps for its calls. Each kind stays until it is asked for again; peers can map it where they
/// can map at all.
enum class scratch_for : unsigned char {
    arrivals,  // messages that are to be combined, and values wider than their elements
    stand_in,  // for buffers that cannot take part themselves
    fusion,    // many tensors packed into one
    levels,    // values that pass through the levels of a hierarchy
};
inline constexpr std::size_t scratch_uses = 4;

/// What a rank that exchanges words of its transport's own, as for a split, writes where others look for its call.
inline constexpr std::uint32_t exchange_mark = 0x5e7;

/// What every transport is: a group of ranks, and this process's or thread's place in it. One call at a time.
template <class Transport>
concept communicator = requires(Transport& ranks, const call_site& where, double seconds) {
    { ranks.rank() } -> std::convertible_to<int>;
    { ranks.size() } -> std::convertible_to<int>;
    { Transport::name } -> std::convertible_to<const char*>;
    ranks.begin(where);  // waits for pending nonblocking calls; throws if the communicator is known to be broken
    ranks.queue();       // the call_queue that nonblocking calls go through
    { ranks.scratch(std::size_t{}, scratch_for::fusion) } -> std::same_as<std::byte*>;
    ranks.fail(errc::broken, "words");  // announces a failure to all peers; does not block, does not throw
};

/// Ranks that send each other messages.
///
/// Messages between two ranks with equal tags arrive in the order in which they were sent. A ticket stands for one message
/// under way, whose bytes must stay where they are until `test` says so; a default one for none: it is assigned to, or destroyed.
/// A receive takes a message of at most its size.
template <class Transport>
concept message_transport =
    communicator<Transport> && requires(Transport& ranks, typename Transport::ticket& ticket, const void* from,
                                        void* to, std::size_t bytes, int peer, int tag, const call_site& where) {
        requires std::movable<typename Transport::ticket>;
        requires std::default_initializable<typename Transport::ticket>;
        { ranks.send(peer, from, bytes, tag) } -> std::same_as<typename Transport::ticket>;
        { ranks.receive(peer, to, bytes, tag) } -> std::same_as<typename Transport::ticket>;
        { ranks.test(ticket) } -> std::same_as<bool>;
        ranks.cancel(
            ticket);  // gives up on a message; a receive's bytes are free then, and its message is for the next one
        { ranks.limit() } -> std::convertible_to<timeout>;  // the timeout of a wait
        ranks.listen(where);                                // throws if a peer has announced a failure
    };

/// Ranks whose messages can bear a mark beside their bytes: a number below `2^mark_bits`, which the
/// receiver hears.
///
/// Marked messages go apart from those with tags. Between two ranks they arrive in the order in which they were sent,
/// whatever their marks.
template <class Transport>
concept marking_transport = message_transport<Transport> &&
                            requires(Transport& ranks, const typename Transport::ticket& ticket, const void* from,
                                     void* to, std::size_t bytes, int peer, std::uint32_t mark) {
                                { ranks.marks() } -> std::same_as<bool>;  // whether they can indeed, on all ranks alike
                                {
                                    ranks.send_marked(peer, from, bytes, mark)
                                } -> std::same_as<typename Transport::ticket>;
                                { ranks.receive_marked(peer, to, bytes) } -> std::same_as<typename Transport::ticket>;
                                {
                                    ranks.mark_of(ticket)
                                } -> std::same_as<std::uint32_t>;  // of one received, when `test` has said so
                            };
inline constexpr int mark_bits = 28;

/// Ranks that load and store each other's memory, and signal through flags that they write alone.
///
/// A call begins with a notice of each rank: `post` releases all that the rank has written before, `await_notice` acquires
/// it. Later steps of a call are counted: `advance` releases all that this rank has written and returns the new value of its
/// counter; `await` acquires what a peer released at that value. Counters are equal on all ranks between calls. A slot is a
/// rank's small record of the call, a window its memory for staging; both are mapped by all. Notice, slot and staging (half
/// a window) may be written before the peers' notices have come: no peer still reads what was there, as notices and slots
/// come in twos, and calls that may stage turn to the half that the one before them has not used.
template <class Transport>
concept memory_transport =
    communicator<Transport> && requires(Transport& ranks, int peer, std::uint64_t step, const call_site& where,
                                        const void* data, std::size_t bytes) {
        ranks.notice_of(peer).fingerprint = std::uint64_t{};
        { ranks.notice_of(peer).carried[0] } -> std::same_as<std::byte&>;
        ranks.post();
        ranks.await_notice(peer, where);
        { ranks.advance() } -> std::same_as<std::uint64_t>;
        ranks.await(peer, step, where);
        { ranks.lost(peer) } -> std::same_as<bool>;         // its process has ended: it touches nothing any more
        { ranks.limit() } -> std::convertible_to<timeout>;  // the timeout of a wait
        ranks.listen(where);  // throws if a peer has announced a failure, in one order with `fail`
        { ranks.slot(peer) } -> std::same_as<std::byte*>;
        { ranks.slot_bytes() } -> std::same_as<std::size_t>;
        { ranks.window(peer) } -> std::same_as<std::byte*>;
        { ranks.window_bytes() } -> std::same_as<std::size_t>;
        ranks.turn_staging();  // to the other half, before a call stages; all ranks do
        ranks.turn_alike();    // all ranks do that too, in a call in which not all have turned it
        { ranks.turned() } -> std::same_as<std::uint64_t>;  // how often it has been turned
        { ranks.staging(peer) } -> std::same_as<std::byte*>;
        { ranks.staging(peer, step) } -> std::same_as<std::byte*>;  // after so many turns
        { ranks.staging_bytes() } -> std::same_as<std::size_t>;
        { ranks.cache_bytes() } -> std::same_as<std::size_t>;              // what the ranks may fill of the last cache
        { ranks.address_of(data, bytes) } -> std::same_as<std::uint64_t>;  // 0 if peers cannot map it
        { ranks.mapped(peer, step, bytes) } -> std::same_as<std::byte*>;   // a peer's address, here
    };

/// What errors call rank `rank` of `ranks`: where these are a part of those that make a call, its number among all of them.
template <class Transport>
int called(const Transport& ranks, int rank) noexcept {
    if constexpr (requires { ranks.called(rank); }) return ranks.called(rank);
    else return rank;
}

/// Whether the ranks are threads of one process, so that none of them is stopped, or dies, alone: a transport may say
/// `static constexpr bool one_process = true`.
template <class Transport>
inline constexpr bool one_process = [] {
    if constexpr (requires { Transport::one_process; }) return Transport::one_process;
    else return false;
}();

/// Transports given for each level: `layered`.
template <class Transport>
concept stacked_transport = communicator<Transport> && requires(Transport& ranks) {
    requires communicator<std::remove_reference_t<decltype(ranks.node())>>;
    requires communicator<std::remove_reference_t<decltype(ranks.wire())>>;
} && !requires(Transport& ranks) { ranks.grouping(); };

/// Memory inside each node and messages between all ranks: `cluster`. Nodes may have unlike numbers of ranks.
template <class Transport>
concept clustered_transport = communicator<Transport> && requires(Transport& ranks) {
    requires memory_transport<std::remove_reference_t<decltype(ranks.node())>>;
    requires message_transport<std::remove_reference_t<decltype(ranks.wire())>>;  // all ranks, numbered as they are
    requires message_transport<std::remove_reference_t<decltype(ranks.ordered_wire())>>;  // numbered node by node
    { ranks.nodes() } -> std::same_as<int>;
    ranks.grouping();  // const int*: the first ordered rank of each node, and the end
};

}  // namespace ddl
