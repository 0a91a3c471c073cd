// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/contiguous.hpp>
#include <ddl/element/alias.hpp>
#include <ddl/executor/grid_call.hpp>
#include <ddl/executor/grid_exchange.hpp>
#include <ddl/executor/grid_limits.hpp>
#include <ddl/executor/grid_move.hpp>
#include <ddl/executor/grid_one_shot.hpp>
#include <ddl/executor/grid_tensors.hpp>
#include <ddl/executor/grid_two_shot.hpp>
#include <ddl/executor/over_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

// The collectives over ranks whose memory grids of blocks reach.
namespace ddl {

/// What an element is on its way through a grid: one of ours with the same bits, where there is one that the op takes.
template <class Op, class Element>
consteval auto grid_element() {
    using alias = typename alias_of<Element>::type;
    if constexpr (combines<Op, alias>) return std::type_identity<alias>{};
    else {
        static_assert(
            computed_by_kernels<Element>,
            "ddl: kernels do not compute with std::complex; write the op as a template, or for ddl::complex_parts");
        return std::type_identity<Element>{};
    }
}
template <class Op, class Element>
using grid_element_t = typename decltype(grid_element<Op, Element>())::type;

/// The grid of a rank for a vector that is sent whole: a parcel for each thread, where the GPU has room.
template <class Body>
constexpr grid_shape one_shot_shape(std::size_t count, int ranks, int blocks, int threads) noexcept {
    const std::size_t most = std::min(Body::parcels_of_a_block, static_cast<std::size_t>(threads));
    const std::size_t parcels = Body::parcels(count);
    const std::size_t room = static_cast<std::size_t>(std::min(blocks, grid_window::inbox_blocks(ranks)));
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

/// The grid of a rank for `Body`, over a whole vector of `count` elements that its ranks share: as many blocks as
/// `grid_limits_of` grants it of those that run at once.
template <class Body, class Element, grid_transport Transport>
grid_shape shared_shape(Transport& ranks, std::size_t count) {
    constexpr grid_limits limits = grid_limits_of<Transport>;
    const int blocks = limits.blocks(ranks.size(), count * sizeof(Element), most_blocks<Body>(ranks));
    return two_shot_shape<Element>(count, ranks.size(), blocks, limits.threads);
}

/// Where a rank's buffers are. Plain bytes.
struct grid_buffers {
    std::uint64_t in;
    std::uint64_t out;
};

/// A call in which the grids of all ranks reach `ins` elements of `in`, and `outs` of `out`. `launch(call, places)` starts them,
/// if there is anything to do.
template <class Checking, class Stored, class Element, grid_transport Transport, class Launch>
void call_grids(Transport& ranks, const call& ours, const Element* in, std::size_t ins, Element* out, std::size_t outs,
                Launch launch) {
    grid_call<Checking, grid_buffers, Transport> here{
        ranks, ours, [&](const call_site& where) {
            ranks.require_reachable("in", in, ins * sizeof(Element), where);
            ranks.require_reachable("out", out, outs * sizeof(Element), where);
            return grid_buffers{reinterpret_cast<std::uintptr_t>(in), reinterpret_cast<std::uintptr_t>(out)};
        }};
    here.run([&] {
        grid_ranks<Stored> places;
        here.set_windows(places);
        for (int peer = 0; peer < places.size; ++peer) {
            const grid_buffers theirs = here.told(peer);
            places.in[peer] =
                reinterpret_cast<const Stored*>(static_cast<std::uintptr_t>(here.reached(peer, theirs.in)));
            places.out[peer] = reinterpret_cast<Stored*>(static_cast<std::uintptr_t>(here.reached(peer, theirs.out)));
        }
        launch(here, places);
    });
}

/// Bytes of the longest vector that each rank folds alone, where it has so many blocks at once; 0 where none does.
template <class OneShot, grid_transport Transport>
std::size_t longest_one_shot(const Transport& ranks, int blocks) {
    if (!blocks_meet(ranks)) return 0;
    const std::size_t count = OneShot::most(std::min(blocks, grid_window::inbox_blocks(ranks.size())));
    return std::min(grid_limits_of<Transport>.longest_one_shot(ranks.size()),
                    count * sizeof(typename OneShot::element_type));
}

/// Starts the fold of a vector whose result `What` says where to put: in one shot if it is short.
template <collective What, class Op, class Stored, class Call, grid_transport Transport>
void launch_fold(Transport& ranks, Call& here, const grid_ranks<Stored>& places, std::size_t count, const Op& op,
                 int root) {
    constexpr grid_limits limits = grid_limits_of<Transport>;
    using one_shot = grid_one_shot<Op, Stored>;
    if constexpr (one_shot::parcels_of_a_block != 0)
        if (blocks_meet(ranks) && count * sizeof(Stored) <= limits.longest_one_shot(places.size)) {
            const int blocks = most_blocks<one_shot>(ranks);  // which loads the kernel
            if (count * sizeof(Stored) <= longest_one_shot<one_shot>(ranks, blocks))
                return here.launch(one_shot{places, count, op, What == collective::reduce ? root : -1},
                                   one_shot_shape<one_shot>(count, places.size, blocks, limits.threads));
        }
    using two_shot = grid_two_shot<Op, Stored, What>;
    here.launch(two_shot{places, count, op, root}, shared_shape<two_shot, Stored>(ranks, count));
}

/// Folds `count` elements of every rank into `out` of every rank. The host sides compare the call, then each grid is launched
/// once. Blocks until the grids have ended where the transport does; else it returns when all ranks have launched.
template <class Schedule, class Checking, class Op, class Element, grid_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op) {
    using stored = grid_element_t<Op, Element>;
    call_grids<Checking, stored>(ranks, describe<Op, stored, Schedule>(collective::allreduce, count, 0), in, count, out,
                                 count, [&](auto& here, const grid_ranks<stored>& places) {
                                     launch_fold<collective::allreduce>(ranks, here, places, count, op, 0);
                                 });
}

template <class Schedule, class Checking, class Op, class Element, grid_transport Transport>
void reduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op, int root) {
    using stored = grid_element_t<Op, Element>;
    call_grids<Checking, stored>(ranks, describe<Op, stored, Schedule>(collective::reduce, count, root), in, count, out,
                                 ranks.rank() == root ? count : 0, [&](auto& here, const grid_ranks<stored>& places) {
                                     launch_fold<collective::reduce>(ranks, here, places, count, op, root);
                                 });
}

/// `count` elements in, block `rank` of them out.
template <class Schedule, class Checking, class Op, class Element, grid_transport Transport>
void reduce_scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op) {
    using stored = grid_element_t<Op, Element>;
    call_grids<Checking, stored>(ranks, describe<Op, stored, Schedule>(collective::reduce_scatter, count, 0), in, count,
                                 out, partition{count, ranks.size()}.length(ranks.rank()),
                                 [&](auto& here, const grid_ranks<stored>& places) {
                                     using body = grid_two_shot<Op, stored, collective::reduce_scatter>;
                                     here.launch(body{places, count, op}, shared_shape<body, stored>(ranks, count));
                                 });
}

/// A call in which every rank moves its block of `count` elements, or a share of them.
template <class Checking, collective What, class Element, grid_transport Transport>
void move_over(Transport& ranks, const call& ours, const Element* in, std::size_t ins, Element* out, std::size_t outs,
               std::size_t count, int root) {
    call_grids<Checking, Element>(ranks, ours, in, ins, out, outs, [&](auto& here, const grid_ranks<Element>& places) {
        using body = grid_move<Element, What>;
        here.launch(body{places, count, root}, shared_shape<body, Element>(ranks, count));
    });
}

/// Block `rank` of `count` elements in, all of them out.
template <class Schedule, class Checking, class Element, grid_transport Transport>
void all_gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    move_over<Checking, collective::all_gather>(
        ranks, describe<no_op, Element, Schedule>(collective::all_gather, count, 0), in,
        partition{count, ranks.size()}.length(ranks.rank()), out, count, count, 0);
}

template <class Schedule, class Checking, class Element, grid_transport Transport>
void broadcast_over(Transport& ranks, Element* data, std::size_t count, int root) {
    move_over<Checking, collective::broadcast>(
        ranks, describe<no_op, Element, Schedule>(collective::broadcast, count, root),
        static_cast<const Element*>(data), ranks.rank() == root ? count : 0, data, count, count, root);
}

/// Block `rank` of `count` elements in; all of them out at the root, where `out` must be.
template <class Schedule, class Checking, class Element, grid_transport Transport>
void gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    move_over<Checking, collective::gather>(ranks, describe<no_op, Element, Schedule>(collective::gather, count, root),
                                            in, partition{count, ranks.size()}.length(ranks.rank()), out,
                                            ranks.rank() == root ? count : 0, count, root);
}

/// `count` elements in at the root, where `in` must be; block `rank` of them out.
template <class Schedule, class Checking, class Element, grid_transport Transport>
void scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    move_over<Checking, collective::scatter>(
        ranks, describe<no_op, Element, Schedule>(collective::scatter, count, root), in,
        ranks.rank() == root ? count : 0, out, partition{count, ranks.size()}.length(ranks.rank()), count, root);
}

/// `p` equal blocks of `count / p` elements in, block `r` for rank `r`; as many out, block `r` from rank `r`. `in` and `out` are
/// one buffer or do not overlap.
template <class Schedule, class Checking, class Element, grid_transport Transport>
void all_to_all_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    const auto launch = [&](auto& here, const grid_ranks<Element>& places) {
        using body = grid_exchange<Element>;
        constexpr grid_limits limits = grid_limits_of<Transport>;
        const std::size_t each = count / static_cast<std::size_t>(places.size);
        const int most = std::min(limits.blocks(places.size, count * sizeof(Element), most_blocks<body>(ranks)),
                                  grid_window::most_blocks);
        // a rank does half of each pair
        const int of_a_peer = two_shot_shape<Element>(each / 2, 1, most, limits.threads).blocks;
        here.launch(body{places, each}, {std::min(of_a_peer * places.size, most), limits.threads});
    };
    call_grids<Checking, Element>(ranks, describe<no_op, Element, Schedule>(collective::all_to_all, count, 0), in,
                                  count, out, count, launch);
}

/// Whether all of `part`, which is not empty, lies in `whole`.
inline bool holds(std::span<const std::byte> whole, std::span<const std::byte> part) noexcept {
    const std::uintptr_t before =
        reinterpret_cast<std::uintptr_t>(part.data()) - reinterpret_cast<std::uintptr_t>(whole.data());
    return before < whole.size() && part.size() <= whole.size() - before;
}

/// Folds many tensors in place, as many of them in a launch as a table holds. The host sides compare the call, and read
/// each other's addresses, once.
template <class Schedule, class Checking, class Op, grid_transport Transport, class Tensors>
void allreduce_n_over(Transport& ranks, Tensors& tensors, std::uint32_t sizes, const Op& op) {
    using element_type = element_of<decltype(*std::begin(tensors))>;
    using stored = grid_element_t<Op, element_type>;
    constexpr grid_limits limits = grid_limits_of<Transport>;
    auto& host = ranks.host();
    std::size_t count = 0;
    std::size_t addresses = 0;
    for (auto&& each : tensors) {
        count += size_of(each);
        addresses += size_of(each) != 0;
    }
    const std::size_t bytes = addresses * sizeof(std::uint64_t);
    const call ours = describe<Op, stored, Schedule>(collective::allreduce_n, count, static_cast<int>(sizes));
    grid_call<Checking, std::uint64_t, Transport> here{
        ranks, ours, [&](const call_site& where) {
            auto* const list = reinterpret_cast<std::uint64_t*>(host.scratch(bytes, scratch_for::fusion));
            std::size_t next = 0;
            std::span<const std::byte> known;  // most tensors lie in few allocations
            for (auto&& each : tensors) {
                if (size_of(each) == 0) continue;
                const std::span<const element_type> tensor{data_of(each), size_of(each)};
                if (!holds(known, std::as_bytes(tensor))) {
                    ranks.require_reachable("a tensor", tensor.data(), tensor.size_bytes(), where);
                    known = reachable_around(ranks, std::as_bytes(tensor));
                }
                list[next++] = reinterpret_cast<std::uintptr_t>(data_of(each));
            }
            return host.address_of(list, bytes);
        }};
    using body = grid_tensors<Op, stored, limits.table>;
    const std::uint64_t* lists[grid_window::most_ranks] = {};
    for (int peer = 0; peer < ranks.size() && count != 0; ++peer)
        lists[peer] = reinterpret_cast<const std::uint64_t*>(host.mapped(peer, here.told(peer), bytes));
    grid_windows windows;
    here.set_windows(windows);
    grid_table<stored, limits.table> table{ranks.size()};
    const auto launch = [&] {
        here.launch(body{windows, table, op}, shared_shape<body, stored>(ranks, table.packets() * table.unit));
        table.clear();
    };
    here.run([&] {
        std::size_t next = 0;
        for (auto&& each : tensors) {
            if (size_of(each) == 0) continue;
            table.add(size_of(each), [&](int peer) { return here.reached(peer, lists[peer][next]); });
            ++next;
            if (table.full()) launch();
        }
        if (!table.empty()) launch();
    });
}

/// Nobody leaves before the host sides of all have come; what is enqueued for the grids may still run.
template <class Schedule, class Checking, grid_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    barrier_over<Schedule, Checking>(ranks.host(), what);
}

template <collective What, class Schedule, class Op, class Element, grid_transport Transport>
void explain_way(text& line, Transport& ranks, const void*, std::size_t count) {
    const std::size_t one_shot = longest_one_shot<grid_one_shot<Op, Element>>(ranks, ranks.most_blocks());
    line.append("direct, ");
    if (What == collective::all_to_all)
        line.append("in one launch: every rank exchanges half of the blocks that it and a peer have for each other");
    else if (std::same_as<Op, no_op>)
        line.append("in one launch: every rank moves its block or share to where it belongs");
    else if ((What == collective::allreduce || What == collective::reduce) && one_shot != 0 &&
             count * sizeof(Element) <= one_shot)
        line.append("one-shot in one launch: up to %zu bytes are sent to all, and every rank folds all of them",
                    one_shot);
    else
        line.append("fused two-shot in one launch: every rank folds its share into %s",
                    What == collective::allreduce ? "all outputs"
                    : What == collective::reduce  ? "the root's output"
                                                  : "its own output");
}

}  // namespace ddl
