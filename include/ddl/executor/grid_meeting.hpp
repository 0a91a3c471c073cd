// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/execution_space.hpp>
#include <ddl/transport/grid_window.hpp>

namespace ddl {

/// Block `space.block()` of every rank has come when it is true: what they wrote before can be read, what they read before
/// can be overwritten. All threads of the block call it, with the number of this meeting. Cost: a store to each peer, and
/// waiting for a load from the own memory. False if somebody did not come.
template <execution_space Space>
constexpr bool meet(Space& space, const grid_windows& ranks, std::uint64_t meeting) {
    const int block = space.block();
    const int rank = space.rank();
    space.barrier();  // with which a thread's release covers what its block has done
    const auto each_peer = [&](const auto& act) {
        for (std::size_t i = space.thread(); i < static_cast<std::size_t>(ranks.size); i += space.threads())
            if (const int peer = static_cast<int>(i); peer != rank) act(peer);
    };
    each_peer([&](int peer) { space.store_release(ranks.window(peer).arrival(block, rank), meeting); });
    bool came = true;
    each_peer([&](int peer) {
        std::uint64_t* const flag = ranks.window(rank).arrival(block, peer);
        // the acquire meets the peer's release above
        if (!space.wait([&] { return space.load_acquire(flag) >= meeting; }, [&] { return peer; })) came = false;
    });
    return space.all(came);
}

/// Runs `work()` between two meetings of the block with its peers.
template <execution_space Space, class Work>
constexpr void between_meetings(Space& space, const grid_windows& ranks, const Work& work) {
    if constexpr (requires { Space::blocks_meet; }) return work();
    std::uint64_t* const count = ranks.window(space.rank()).meetings(space.block());
    const std::uint64_t before = space.load_relaxed(count);
    if (!meet(space, ranks, before + 1)) return;
    work();
    if (!meet(space, ranks, before + 2)) return;
    if (space.thread() == 0) space.store_relaxed(count, before + 2);  // all threads have read it: they met
}

}  // namespace ddl
