// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/packet.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace ddl {

/// Where a body of a grid runs: the view that one block of threads has of itself, and its ways to memory that peers see.
///
/// A body is a `constexpr` template that is handed a space, and asks for nothing else: so it is compiled by any compiler for
/// host threads (`host_block`), and by nvcc for a GPU (`device_block`). All threads of a block call it.
///
/// Flags are words that one block writes and another waits for. `load_acquire` and `store_release` order all that the thread
/// has done before and does after, for every rank whose memory it can reach; the relaxed ones order nothing, but move all 64
/// bits at once. `barrier` orders the threads of the block among themselves. A wait has a deadline: when it expires, `wait`
/// keeps what `missing` says for the error, and is false, as it is from then on.
template <class Space>
concept execution_space = requires(Space& space, std::uint64_t* flag, std::uint64_t value, const std::byte* from,
                                   std::byte* to, const kernel::packet& packet, bool (*ready)(), int (*missing)()) {
    { space.rank() } -> std::same_as<int>;             // whose block this is
    { space.block() } -> std::same_as<int>;            // which of its blocks
    { space.blocks() } -> std::same_as<int>;           // how many it has
    { space.thread() } -> std::same_as<std::size_t>;   // which thread of the block
    { space.threads() } -> std::same_as<std::size_t>;  // how many the block has
    space.barrier();
    { space.all(true) } -> std::same_as<bool>;  // a barrier: whether every thread says so
    { space.load_relaxed(flag) } -> std::same_as<std::uint64_t>;
    { space.load_acquire(flag) } -> std::same_as<std::uint64_t>;
    space.store_relaxed(flag, value);
    space.store_release(flag, value);
    { space.wait(ready, missing) } -> std::same_as<bool>;  // until `ready()`, which waits for rank `missing()`
    { space.load(from) } -> std::same_as<kernel::packet>;  // plain, of aligned bytes
    space.store(to, packet);
};

/// The same space where blocks of other ranks need not run: whoever launches orders the ranks, and no block waits for one.
template <class Space>
struct without_meetings : Space {
    static constexpr bool blocks_meet = false;
};

}  // namespace ddl
