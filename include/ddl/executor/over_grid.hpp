// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/alias.hpp>
#include <ddl/executor/grid_one_shot.hpp>
#include <ddl/executor/grid_two_shot.hpp>
#include <ddl/executor/over_memory.hpp>
#include <ddl/transport/grid_transport.hpp>

#include <algorithm>
#include <array>

// The collectives over ranks whose memory grids of blocks reach.
namespace ddl {

/// What an element is on its way through a grid: one of ours with the same bits, where there is one that the op takes.
template <class Op, class Element>
using grid_element_t =
    std::conditional_t<combines<Op, typename alias_of<Element>::type>, typename alias_of<Element>::type, Element>;

/// When a vector is short, and how many threads fold it. Nobody has measured these on a GPU yet. Specialise `grid_limits_of`
/// for a machine, in every program of a job alike.
struct grid_limits {
    std::size_t one_shot = std::size_t{1} << 16;  // bytes of the longest vector that every rank folds alone
    int threads = 512;                            // of a block, at most
};
template <class Transport>
inline constexpr grid_limits grid_limits_of{};

/// The grid of a rank for a vector that is sent whole: a parcel for each thread, where the GPU has room.
template <class Body>
constexpr grid_shape one_shot_shape(std::size_t count, int blocks, int threads) noexcept {
    const std::size_t most = std::min(Body::parcels_of_a_block, static_cast<std::size_t>(threads));
    const std::size_t parcels = Body::parcels(count);
    const std::size_t room = static_cast<std::size_t>(std::min(blocks, grid_window::inbox_blocks));
    // rather more parcels for a thread than more blocks than there are
    const std::size_t used = std::min((parcels + most - 1) / most, room);
    const std::size_t warps = ((parcels + used - 1) / used + 31) / 32 * 32;
    return {static_cast<int>(used), static_cast<int>(std::min(warps, static_cast<std::size_t>(threads)))};
}

/// The grid of a rank for a vector of which it folds a share: a packet for each thread, where the GPU has room.
template <class Element>
constexpr grid_shape two_shot_shape(std::size_t count, int ranks, int blocks, int threads) noexcept {
    const auto each = kernel::packet_elements<Element> * static_cast<std::size_t>(threads);
    const std::size_t share = partition{count, ranks}.longest();
    const std::size_t wanted = std::max<std::size_t>((share + each - 1) / each, 1);
    return {static_cast<int>(std::min(wanted, static_cast<std::size_t>(std::min(blocks, grid_window::most_blocks)))),
            threads};
}

/// Folds `count` elements of every rank into `out` of every rank. The host sides compare the call, then each grid is launched
/// once. Blocks until the grids have ended where the transport does; else it returns when all ranks have launched.
template <class Schedule, class Checking, class Op, class Element, grid_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    using stored = grid_element_t<Op, Element>;
    using entry = typename Transport::entry;
    struct carried {
        std::uint64_t in;
        std::uint64_t out;
        entry theirs;
    };
    static_assert(sizeof(carried) <= notice::room);
    const call_site where{to_string(what), 0};
    auto& host = ranks.host();
    host.queue().drain();
    const std::size_t bytes = count * sizeof(Element);
    try {
        ranks.require_reachable("in", in, bytes, where);
        ranks.require_reachable("out", out, bytes, where);
    } catch (const error&) {
        if constexpr (Checking::compares) {
            try {
                barrier_over<direct, checked>(host, collective::refused);
            } catch (const error&) {
                // the news of this rank, which the others get; it has its own
            }
        }
        throw;
    }
    const call ours = describe<Op, stored, Schedule>(what, count, detail);
    memory_call here{host, ours, Checking::compares};
    const carried mine{reinterpret_cast<std::uintptr_t>(in), reinterpret_cast<std::uintptr_t>(out),
                       ranks.arrive(where)};
    here.announce(&mine, sizeof mine);
    if (count == 0) return here.end();

    open_buffers(ranks, where);
    grid_ranks<stored> places;
    std::array<entry, grid_window::most_ranks> entries;
    places.size = ranks.size();
    for (int peer = 0; peer < places.size; ++peer) {
        carried theirs;
        std::memcpy(&theirs, here.carried(peer), sizeof theirs);
        places.windows[peer] = ranks.windows()[peer];
        places.in[peer] =
            reinterpret_cast<const stored*>(static_cast<std::uintptr_t>(translated(ranks, peer, theirs.in)));
        places.out[peer] = reinterpret_cast<stored*>(static_cast<std::uintptr_t>(translated(ranks, peer, theirs.out)));
        entries[static_cast<std::size_t>(peer)] = theirs.theirs;
    }
    constexpr grid_limits limits = grid_limits_of<Transport>;
    const int blocks = ranks.most_blocks();
    using one_shot = grid_one_shot<Op, stored>;
    using two_shot = grid_two_shot<Op, stored>;
    const auto launch = [&](const auto& body, grid_shape shape) { ranks.launch(body, shape, entries.data(), where); };
    const auto leave = [&] {
        here.step();
        ranks.follow(entries.data(), where);
        here.end();
        ranks.settle(where);
    };
    if constexpr (one_shot::parcels_of_a_block != 0)
        if (blocks_meet(ranks) && bytes <= limits.one_shot &&
            count <= one_shot::most(std::min(blocks, grid_window::inbox_blocks))) {
            launch(one_shot{places, count, op}, one_shot_shape<one_shot>(count, blocks, limits.threads));
            return leave();
        }
    launch(two_shot{places, count, op}, two_shot_shape<stored>(count, places.size, blocks, limits.threads));
    leave();
}

/// Nobody leaves before the host sides of all have come; what is enqueued for the grids may still run.
template <class Schedule, class Checking, grid_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    barrier_over<Schedule, Checking>(ranks.host(), what);
}

template <class Schedule, class Op, class Element, grid_transport Transport>
void explain_way(text& line, Transport& ranks, collective, const void*, std::size_t count) {
    constexpr grid_limits limits = grid_limits_of<Transport>;
    if (blocks_meet(ranks) && count * sizeof(Element) <= limits.one_shot)
        line.append("direct, one-shot in one launch: up to %zu bytes are sent to all, and every rank folds all of them",
                    limits.one_shot);
    else line.append("direct, fused two-shot in one launch: every rank folds its share into all outputs");
}

}  // namespace ddl
