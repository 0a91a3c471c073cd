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

/// Runs `work()` between two meetings of the block with its peers. Who has given up in one comes to no other: a peer that is late
/// would take the next call for this one.
template <execution_space Space, class Work>
constexpr void between_meetings(Space& space, const grid_windows& ranks, const Work& work) {
    if constexpr (requires { Space::blocks_meet; }) return work();
    const int block = space.block();
    const int rank = space.rank();
    std::uint64_t* const count = ranks.window(rank).meetings(block);
    const std::uint64_t before = space.load_relaxed(count);
    if (before % 2 != 0) return;  // half a call: it was given up
    const bool came = meet(space, ranks, before + 1);
    if (space.thread() == 0) space.store_relaxed(count, before + 1);  // all threads have read it: they are together
    if (!came) {
        // Takes back that it has come: peers whose grid begins later would work on buffers that are their owner's again. A flag
        // has one writer, so who reads the lower number never reads the higher one again, waits in vain, and touches nothing.
        // Who read the higher one before works, in no order with this: hosts wait for such grids.
        if (space.thread() == 0)
            for (int peer = 0; peer < ranks.size; ++peer)
                if (peer != rank) space.store_relaxed(ranks.window(peer).arrival(block, rank), before);
        return;
    }
    work();
    // who gives up here has been met by all: their grids run, and none begins later
    if (meet(space, ranks, before + 2) && space.thread() == 0) space.store_relaxed(count, before + 2);
}

}  // namespace ddl
