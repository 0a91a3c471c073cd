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
inline constexpr fusion_limits fusion_limits_of<Transport> = never_packed;

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

/// One call by messages: its buffers are checked, ranks compare it, and `work(here)` exchanges blocks and folds. Blocks.
template <class Element, device_message_transport Transport>
class device_message_call {
public:
    struct run_of_bytes {
        std::byte* data;
        std::size_t bytes;
    };

    /// The call reads `ins` elements of `in` and writes `outs` of `out`; `room` elements of each rank are kept where they arrive.
    template <class Checking, class Work>
    static void carry(Transport& ranks, Checking, const call& ours, const Element* in, std::size_t ins,
                      const Element* out, std::size_t outs, std::size_t room, Work work) {
        auto& wire = ranks.wire();
        const call_site where{to_string(ours.what), 0};
        const std::size_t stride = (room * sizeof(Element) + 255) / 256 * 256;
        wire.queue().drain();  // earlier calls use the scratch
        std::byte* const arrivals = prepared<Checking>(wire, [&] {
            ranks.require_reachable("in", in, ins * sizeof(Element), where);
            ranks.require_reachable("out", out, outs * sizeof(Element), where);
            return ranks.device_scratch(stride * static_cast<std::size_t>(ranks.size()));
        });
        compare_levels<Checking>(wire, ours);
        if (ours.count == 0) return;
        half_done{wire}.during(where, [&] {
            ranks.drain(where);
            work(device_message_call{ranks, where, arrivals, stride});
        });
    }

    static run_of_bytes run(const Element* data, std::size_t count) {
        return {reinterpret_cast<std::byte*>(const_cast<Element*>(data)), count * sizeof(Element)};
    }
    static run_of_bytes block(const Element* vector, const partition& blocks, int part) {
        return run(vector + blocks.first(part), blocks.length(part));
    }
    static constexpr run_of_bytes none{nullptr, 0};

    /// Where what `peer` sends may lie until it is folded; this rank's own place is free for its result.
    Element* arrival(int peer) const {
        return reinterpret_cast<Element*>(arrivals_ + stride_ * static_cast<std::size_t>(peer));
    }
    template <class Outgoing, class Incoming>
    void exchange(Outgoing outgoing, Incoming incoming) const {
        exchange_blocks(ranks_.wire(), where_, outgoing, incoming);
    }
    /// Every rank sends its block of `vector` to all that `take` one, and gets theirs.
    template <class Takes>
    void spread(Element* vector, const partition& blocks, const Element* mine, Takes takes) const {
        const int rank = ranks_.rank();
        exchange([&](int peer) { return takes(peer) ? run(mine, blocks.length(rank)) : none; },
                 [&](int peer) { return takes(rank) ? block(vector, blocks, peer) : none; });
    }
    void copy(Element* to, const Element* from, std::size_t count) const {
        if (to != from && count != 0)
            ranks_.copy(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                        count * sizeof(Element));
    }
    /// Folds this rank's block of all vectors into `out`, in rank order and rounded once.
    template <class Op>
    void fold(const Element* in, const partition& blocks, Element* out, const Op& op) const {
        using stored = grid_element_t<Op, Element>;
        const int rank = ranks_.rank();
        const std::size_t mine = blocks.length(rank);
        exchange([&](int peer) { return block(in, blocks, peer); }, [&](int peer) { return run(arrival(peer), mine); });
        if (mine == 0) return;
        grid_ranks<stored> places;
        places.size = ranks_.size();
        for (int peer = 0; peer < places.size; ++peer)
            places.in[peer] = reinterpret_cast<const stored*>(peer == rank ? in + blocks.first(rank) : arrival(peer));
        places.out[0] = reinterpret_cast<stored*>(out);
        ranks_.fold(
            grid_two_shot<Op, stored, collective::reduce>{places, mine, op, 0},
            two_shot_shape<stored>(mine, places.size, ranks_.most_blocks(), sound_grid_limits<Transport>().threads),
            places.size);
    }

private:
    device_message_call(Transport& ranks, const call_site& where, std::byte* arrivals, std::size_t stride)
        : ranks_{ranks}, where_{where}, arrivals_{arrivals}, stride_{stride} {}

    Transport& ranks_;
    call_site where_;
    std::byte* arrivals_;
    std::size_t stride_;
};

/// An allreduce by messages: each rank is sent its block of all others' vectors, folds them on its device, and sends the result
/// to all. Cost: `2(p-1)` messages of `n/p` bytes a rank, and as many bytes of device memory as a vector has.
template <class Schedule, class Checking, class Op, class Element, device_message_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    if (!ranks.takes_device_memory())
        return allreduce_over<tuned, Checking>(ranks.through_host(), in, out, count, op, what, detail);
    const partition blocks{count, ranks.size()};
    device_message_call<Element, Transport>::carry(
        ranks, Checking{}, describe<Op, grid_element_t<Op, Element>, Schedule>(what, count, detail), in, count, out,
        count, blocks.length(ranks.rank()), [&](const auto& here) {
            Element* const mine = out + blocks.first(ranks.rank());
            here.fold(in, blocks, mine, op);
            here.spread(out, blocks, mine, [](int) { return true; });
        });
}

template <class Schedule, class Checking, class Op, class Element, device_message_transport Transport>
void reduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op, int root) {
    if (!ranks.takes_device_memory())
        return reduce_over<tuned, Checking>(ranks.through_host(), in, out, count, op, root);
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    device_message_call<Element, Transport>::carry(
        ranks, Checking{}, describe<Op, grid_element_t<Op, Element>, Schedule>(collective::reduce, count, root), in,
        count, out, rank == root ? count : 0, blocks.length(rank), [&](const auto& here) {
            Element* const mine = rank == root ? out + blocks.first(rank) : here.arrival(rank);
            here.fold(in, blocks, mine, op);
            here.spread(out, blocks, mine, [&](int peer) { return peer == root; });
        });
}

/// `count` elements in, block `rank` of them out.
template <class Schedule, class Checking, class Op, class Element, device_message_transport Transport>
void reduce_scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op) {
    if (!ranks.takes_device_memory())
        return reduce_scatter_over<tuned, Checking>(ranks.through_host(), in, out, count, op);
    const partition blocks{count, ranks.size()};
    const std::size_t mine = blocks.length(ranks.rank());
    device_message_call<Element, Transport>::carry(
        ranks, Checking{}, describe<Op, grid_element_t<Op, Element>, Schedule>(collective::reduce_scatter, count, 0),
        in, count, out, mine, mine, [&](const auto& here) { here.fold(in, blocks, out, op); });
}

/// Block `rank` of `count` elements in, all of them out.
template <class Schedule, class Checking, class Element, device_message_transport Transport>
void all_gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    if (!ranks.takes_device_memory()) return all_gather_over<tuned, Checking>(ranks.through_host(), in, out, count);
    const partition blocks{count, ranks.size()};
    const std::size_t mine = blocks.length(ranks.rank());
    device_message_call<Element, Transport>::carry(ranks, Checking{},
                                                   describe<no_op, Element, Schedule>(collective::all_gather, count, 0),
                                                   in, mine, out, count, 0, [&](const auto& here) {
                                                       here.copy(out + blocks.first(ranks.rank()), in, mine);
                                                       here.spread(out, blocks, in, [](int) { return true; });
                                                   });
}

/// The vector leaves the root in blocks, one for each rank, which all ranks pass on.
template <class Schedule, class Checking, class Element, device_message_transport Transport>
void broadcast_over(Transport& ranks, Element* data, std::size_t count, int root) {
    if (!ranks.takes_device_memory()) return broadcast_over<tuned, Checking>(ranks.through_host(), data, count, root);
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    device_message_call<Element, Transport>::carry(
        ranks, Checking{}, describe<no_op, Element, Schedule>(collective::broadcast, count, root),
        static_cast<const Element*>(data), 0, data, count, 0, [&](const auto& here) {
            here.exchange([&](int peer) { return rank == root ? here.block(data, blocks, peer) : here.none; },
                          [&](int peer) { return peer == root ? here.block(data, blocks, rank) : here.none; });
            here.spread(data, blocks, data + blocks.first(rank), [&](int peer) { return peer != root; });
        });
}

/// Block `rank` of `count` elements in; all of them out at the root, where `out` must be.
template <class Schedule, class Checking, class Element, device_message_transport Transport>
void gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    if (!ranks.takes_device_memory()) return gather_over<tuned, Checking>(ranks.through_host(), in, out, count, root);
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    device_message_call<Element, Transport>::carry(
        ranks, Checking{}, describe<no_op, Element, Schedule>(collective::gather, count, root), in, blocks.length(rank),
        out, rank == root ? count : 0, 0, [&](const auto& here) {
            if (rank == root) here.copy(out + blocks.first(rank), in, blocks.length(rank));
            here.spread(out, blocks, in, [&](int peer) { return peer == root; });
        });
}

/// `count` elements in at the root, where `in` must be; block `rank` of them out.
template <class Schedule, class Checking, class Element, device_message_transport Transport>
void scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    if (!ranks.takes_device_memory()) return scatter_over<tuned, Checking>(ranks.through_host(), in, out, count, root);
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    device_message_call<Element, Transport>::carry(
        ranks, Checking{}, describe<no_op, Element, Schedule>(collective::scatter, count, root), in,
        rank == root ? count : 0, out, blocks.length(rank), 0, [&](const auto& here) {
            if (rank == root) here.copy(out, in + blocks.first(rank), blocks.length(rank));
            here.exchange([&](int peer) { return rank == root ? here.block(in, blocks, peer) : here.none; },
                          [&](int peer) { return peer == root ? here.run(out, blocks.length(rank)) : here.none; });
        });
}

/// `p` equal blocks in and out. In place what arrives waits in memory of its own until all has been sent.
template <class Schedule, class Checking, class Element, device_message_transport Transport>
void all_to_all_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    if (!ranks.takes_device_memory()) return all_to_all_over<tuned, Checking>(ranks.through_host(), in, out, count);
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    const bool in_place = in == out;
    device_message_call<Element, Transport>::carry(
        ranks, Checking{}, describe<no_op, Element, Schedule>(collective::all_to_all, count, 0), in, count, out, count,
        in_place ? blocks.longest() : 0, [&](const auto& here) {
            here.exchange([&](int peer) { return here.block(in, blocks, peer); },
                          [&](int peer) {
                              return here.run(in_place ? here.arrival(peer) : out + blocks.first(peer),
                                              blocks.length(peer));
                          });
            for (int peer = 0; peer < ranks.size(); ++peer)
                if (peer == rank) here.copy(out + blocks.first(rank), in + blocks.first(rank), blocks.length(rank));
                else if (in_place) here.copy(out + blocks.first(peer), here.arrival(peer), blocks.length(peer));
        });
}

template <class Schedule, class Checking, device_message_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    barrier_over<recursive_doubling, Checking>(ranks.wire(), what);
}

template <collective What, class Schedule, class Op, class Element, device_message_transport Transport>
void explain_way(text& line, Transport& ranks, const void* in, std::size_t count) {
    if (!ranks.takes_device_memory())
        return explain_way<What, tuned, Op, Element>(line, ranks.through_host(), in, count);
    line.append("direct, by messages from device memory");
    if (!std::same_as<Op, no_op>) line.append(": every rank folds its block on its device");
}

}  // namespace ddl
