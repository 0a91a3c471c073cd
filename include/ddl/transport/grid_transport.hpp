// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace ddl {

/// How many blocks of how many threads a rank has in a launch.
struct grid_shape {
    int blocks = 1;
    int threads = 1;
};

/// Ranks whose memory is reached by the blocks of grids, as that of GPUs is. Each has a host side, a thread that launches.
///
/// The host sides meet over `host()`: there calls are compared, and told where buffers are. A call goes: `require_reachable`
/// for each buffer; `arrive`, whose `entry` all ranks get to see; `launch`, after which the blocks of all ranks run at the same
/// time, or an error is thrown; `follow`, once all have launched; `settle`, which waits for the grid where the call blocks.
template <class Transport>
concept grid_transport = communicator<Transport> && requires(Transport& ranks, const call_site& where, const void* data,
                                                             const typename Transport::entry* entries) {
    requires memory_transport<std::remove_reference_t<decltype(ranks.host())>>;
    requires std::is_trivially_copyable_v<typename Transport::entry>;
    { ranks.windows() } -> std::same_as<std::uint64_t* const*>;  // of all ranks: see grid_window
    { ranks.most_blocks() } -> std::same_as<int>;                // of a rank, however small; equal on all
    ranks.require_reachable("in", data, std::size_t{}, where);
    { ranks.arrive(where) } -> std::same_as<typename Transport::entry>;
    ranks.follow(entries, where);
    ranks.settle(where);
};

/// Whether the blocks of all ranks run at the same time. A transport may say at run time that they need not: then it orders
/// the ranks itself, only bodies that meet `between_meetings` are launched, and those meetings are none.
template <grid_transport Transport>
constexpr bool blocks_meet(const Transport& ranks) {
    if constexpr (requires { ranks.blocks_meet(); }) return ranks.blocks_meet();
    else return true;
}

/// Blocks of a rank that run at once where they run `Body`. A transport may know better than for all bodies alike, and says
/// the same on all ranks.
template <class Body, grid_transport Transport>
int most_blocks(Transport& ranks) {
    if constexpr (requires { ranks.template most_blocks_of<Body>(); }) return ranks.template most_blocks_of<Body>();
    else return ranks.most_blocks();
}

/// Memory around a buffer that `require_reachable` has let pass: buffers in it would pass, too, in the same call. No more than
/// the buffer where the transport does not know.
template <grid_transport Transport>
std::span<const std::byte> reachable_around(const Transport& ranks, std::span<const std::byte> buffer) {
    if constexpr (requires { ranks.reachable_around(buffer); }) return ranks.reachable_around(buffer);
    else return buffer;
}

/// A call has failed on this rank, and nobody will launch for it any more: for transports whose grids may still reach its buffers.
/// Waits until they have ended, or for some seconds.
template <grid_transport Transport>
void retreat(Transport& ranks) noexcept {
    if constexpr (requires { ranks.retreat(); }) ranks.retreat();
}

/// For transports whose ranks have addresses of their own. `publish_buffers` is called when a call has begun, before its notice:
/// it tells of what `require_reachable` was asked for. `open_buffers`, once all ranks have told.
template <grid_transport Transport>
void publish_buffers(Transport& ranks) {
    if constexpr (requires { ranks.publish_buffers(); }) ranks.publish_buffers();
}
template <grid_transport Transport>
void open_buffers(Transport& ranks, const call_site& where) {
    if constexpr (requires { ranks.open_buffers(where); }) ranks.open_buffers(where);
}
/// An address that `peer` told, as this rank's blocks reach it. After `open_buffers`.
template <grid_transport Transport>
std::uint64_t translated(Transport& ranks, int peer, std::uint64_t address) {
    if constexpr (requires { ranks.translated(peer, address); }) return ranks.translated(peer, address);
    else return address;
}

}  // namespace ddl
