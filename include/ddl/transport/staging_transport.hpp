// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>

#include <type_traits>

namespace ddl {

/// Ranks whose buffers lie where the transport under them cannot reach, as in a GPU: they pass through slots of host memory.
///
/// A slot holds one chunk. Copies of one slot are carried out in the order in which they were started, those of different
/// slots at the same time. `fetch` and `store` start a copy to or from byte `at` of a slot and return; `await` waits for all
/// copies of a slot.
template <class Transport>
concept staging_transport =
    communicator<Transport> && requires(Transport& ranks, const call_site& where, int slot, std::byte* device,
                                        const std::byte* data, std::size_t at, std::size_t bytes) {
        requires communicator<std::remove_reference_t<decltype(ranks.host())>>;
        { ranks.chunk_bytes(bytes) } -> std::same_as<std::size_t>;  // of a chunk where so many pass
        { ranks.slot_count() } -> std::same_as<int>;
        { ranks.slot(slot, bytes) } -> std::same_as<std::byte*>;  // at least so many bytes
        ranks.arrive(slot);  // what the caller has begun ends before any fetch; so many slots, the first, will be used
        ranks.require_reachable("in", data, bytes, where);  // throws where copies could not reach it
        ranks.fetch(slot, at, data, bytes);
        ranks.store(slot, at, device, bytes);
        ranks.await(slot);
    };

}  // namespace ddl
