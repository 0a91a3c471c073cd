// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/grid_transport.hpp>

namespace ddl {

/// Ranks with a device each whose memory messages can be sent from and received in, if the wire says so at run time: else their
/// buffers pass through the host, by `through_host()`.
///
/// A call waits for the device with `drain`, sends and receives, and has what arrived folded by `fold(body, shape, ranks)`:
/// blocks of as many virtual ranks, which meet nobody. `fold` returns when they have ended.
template <class Transport>
concept device_message_transport =
    communicator<Transport> && requires(Transport& ranks, const call_site& where, const void* data, std::byte* to) {
        requires message_transport<std::remove_reference_t<decltype(ranks.wire())>>;
        requires communicator<std::remove_reference_t<decltype(ranks.through_host())>>;
        { ranks.takes_device_memory() } -> std::same_as<bool>;
        { ranks.most_blocks() } -> std::same_as<int>;
        { ranks.device_scratch(std::size_t{}) } -> std::same_as<std::byte*>;  // stays until it is asked for again
        ranks.require_reachable("in", data, std::size_t{}, where);
        ranks.drain(where);
        ranks.copy(to, static_cast<const std::byte*>(data), std::size_t{});  // within the device; blocks
    };

}  // namespace ddl
