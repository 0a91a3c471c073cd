// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/fusion.hpp>
#include <ddl/executor/message_wait.hpp>
#include <ddl/executor/over_grid.hpp>
#include <ddl/executor/over_levels.hpp>
#include <ddl/executor/over_staging.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/transport/device_messages.hpp>

#include <deque>

// The collectives over ranks that send each other messages from device memory.
namespace ddl {

template <device_message_transport Transport>
inline constexpr fusion_limits fusion_limits_of<Transport>{1, 0};  // no host may pack what lies in a GPU

/// Sends to all peers and receives from all at once: `outgoing(peer)` and `incoming(peer)` are spans of bytes. Returns when
/// both have been done. Blocks.
template <message_transport Wire, class Outgoing, class Incoming>
void exchange_blocks(Wire& wire, const call_site& where, Outgoing outgoing, Incoming incoming) {
    const int tag = static_cast<int>(message_tag::payload);
    std::deque<pending_message<Wire>> messages;
    for (int distance = 1; distance < wire.size(); ++distance) {
        const int from = (wire.rank() + wire.size() - distance) % wire.size();
        const auto [data, bytes] = incoming(from);
        if (bytes != 0) messages.emplace_back(wire, from, wire.receive(from, data, bytes, tag));
    }
    for (int distance = 1; distance < wire.size(); ++distance) {
        const int to = (wire.rank() + distance) % wire.size();
        const auto [data, bytes] = outgoing(to);
        if (bytes != 0) messages.emplace_back(wire, to, wire.send(to, data, bytes, tag));
    }
    for (auto& each : messages) each.complete(where);
}

/// An allreduce by messages: each rank is sent its block of all others' vectors, folds them on its device, in rank order and
/// rounded once, and sends the result to all. Blocks. Cost: `2(p-1)` messages of `n/p` bytes a rank, and as many bytes of
/// device memory as a vector has.
template <class Schedule, class Checking, class Op, class Element, device_message_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    static_assert(std::same_as<Schedule, direct>,
                  "ddl: messages of device memory go to all ranks at once; write ddl::direct, or name no schedule");
    if (!ranks.takes_device_memory())
        return allreduce_over<tuned, Checking>(ranks.through_host(), in, out, count, op, what, detail);
    using stored = grid_element_t<Op, Element>;
    auto& wire = ranks.wire();
    const call_site where{to_string(what), 0};
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    const std::size_t mine = blocks.length(rank);
    const std::size_t stride = (mine * sizeof(Element) + 255) / 256 * 256;
    wire.queue().drain();  // earlier calls use the scratch
    std::byte* const arrivals = prepared<Checking>(wire, [&] {
        ranks.require_reachable("in", in, count * sizeof(Element), where);
        ranks.require_reachable("out", out, count * sizeof(Element), where);
        return ranks.device_scratch(stride * static_cast<std::size_t>(ranks.size()));
    });
    compare_levels<Checking>(wire, describe<Op, stored, Schedule>(what, count, detail));
    if (count == 0) return;
    half_done guard{wire};
    guard.begin(where);

    struct run_of_bytes {
        std::byte* data;
        std::size_t bytes;
    };
    const auto block_of = [&](const Element* vector, int peer) {
        return run_of_bytes{reinterpret_cast<std::byte*>(const_cast<Element*>(vector + blocks.first(peer))),
                            blocks.length(peer) * sizeof(Element)};
    };
    const auto arrival_of = [&](int peer) {
        return run_of_bytes{arrivals + stride * static_cast<std::size_t>(peer), mine * sizeof(Element)};
    };
    ranks.drain(where);
    exchange_blocks(
        wire, where, [&](int peer) { return block_of(in, peer); }, arrival_of);
    if (mine != 0) {
        grid_ranks<stored> places;
        places.size = ranks.size();
        for (int peer = 0; peer < places.size; ++peer)
            places.in[peer] =
                reinterpret_cast<const stored*>((peer == rank ? block_of(in, rank) : arrival_of(peer)).data);
        places.out[0] = reinterpret_cast<stored*>(block_of(out, rank).data);
        ranks.fold(grid_two_shot<Op, stored, collective::reduce>{places, mine, op, 0},
                   two_shot_shape<stored>(mine, places.size, ranks.most_blocks(), grid_limits_of<Transport>.threads),
                   places.size);
    }
    exchange_blocks(
        wire, where, [&](int) { return block_of(out, rank); }, [&](int peer) { return block_of(out, peer); });
    guard.end();
}

template <class Schedule, class Checking, device_message_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    barrier_over<recursive_doubling, Checking>(ranks.wire(), what);
}

template <class Schedule, class Op, class Element, device_message_transport Transport>
void explain_way(text& line, Transport& ranks, collective what, const void* in, std::size_t count) {
    if (!ranks.takes_device_memory())
        return explain_way<tuned, Op, Element>(line, ranks.through_host(), what, in, count);
    line.append("direct, by messages from device memory: every rank folds its block on its device");
}

}  // namespace ddl
