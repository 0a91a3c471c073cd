// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/over_cluster.hpp>
#include <ddl/executor/over_levels.hpp>
#include <ddl/executor/over_memory.hpp>
#include <ddl/executor/over_messages.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/executor/refusal.hpp>
#include <ddl/transport/staging_transport.hpp>

#include <algorithm>

// The collectives over ranks whose buffers pass through slots of host memory.
namespace ddl {

template <staging_transport Transport>
using host_of = std::remove_reference_t<decltype(std::declval<Transport&>().host())>;

/// Neighbouring blocks of a vector that lie in the device: `[first, last)`, the first of them at `data`.
template <class Element>
struct device_blocks {
    Element* data;
    int first;
    int last;
};

/// Where a chunk lies that the host's call reads and writes: in place, or in two halves of a slot.
enum class slot_halves { one, apart };

/// A call, chunk after chunk: while the host sides carry out one, the next ones are fetched and the last ones stored.
///
/// The vector is `blocks`, and a chunk has as many elements of each of them, one less of the shorter ones at the end: so it is
/// a vector in blocks itself, and `carry(from, to, pieces)` is the collective of the whole. Ranks compare `whole` beside the first
/// copies, unless `Whole` is `unchecked`, because the calls of chunks do.
template <class Checking, class Element, class Whole = Checking, slot_halves Halves = slot_halves::one,
          staging_transport Transport, class Carry>
void stage(Transport& ranks, const call& whole, partition blocks, device_blocks<const Element> in,
           device_blocks<Element> out, Carry carry) {
    const call_site where{to_string(whole.what)};
    const std::size_t fits =
        ranks.chunk_bytes(blocks.count * sizeof(Element)) / sizeof(Element) / static_cast<std::size_t>(blocks.parts);
    const std::size_t each = fits != 0 ? fits : 1;
    const std::size_t chunks = blocks.count == 0 ? 1 : (blocks.longest() + each - 1) / each;
    const std::size_t half = each * static_cast<std::size_t>(blocks.parts);
    constexpr bool apart = Halves == slot_halves::apart;
    const std::size_t room = (apart ? 2 * half : half) * sizeof(Element);
    const std::size_t used = std::min(static_cast<std::size_t>(ranks.slot_count()), chunks);  // slots
    const auto length = [&](std::size_t chunk, int block) {
        return segment_length(blocks.length(block), chunk * each, each);
    };
    const auto pieces = [&](std::size_t chunk) {
        std::size_t count = 0;
        for (int block = 0; block < blocks.parts; ++block) count += length(chunk, block);
        return partition{count, blocks.parts};
    };
    // a vector of one chunk lies there as it does here
    const auto each_run = [&](const auto& side, std::size_t chunk, auto copy) {
        const partition places = pieces(chunk);
        const std::size_t begin = chunk * each;
        if (side.first == side.last) return;
        if (chunks == 1)
            return copy(places.first(side.first), side.data, places.first(side.last) - places.first(side.first));
        for (int block = side.first; block < side.last; ++block)
            copy(places.first(block), side.data + (blocks.first(block) - blocks.first(side.first)) + begin,
                 places.length(block));
    };
    const auto fetch = [&](std::size_t chunk) {
        if (chunk >= chunks) return;
        const int slot = static_cast<int>(chunk % used);
        static_cast<void>(ranks.slot(slot, room));
        each_run(in, chunk, [&](std::size_t at, const Element* from, std::size_t count) {
            ranks.fetch(slot, at * sizeof(Element), reinterpret_cast<const std::byte*>(from), count * sizeof(Element));
        });
    };
    // what the device refuses leaves the others waiting for a chunk: between two of them they can be told
    const auto or_tell = [&](const auto& copies) { prepared<Checking>(ranks.host(), copies); };
    const auto held = [&](const auto& side) {
        return (blocks.first(side.last) - blocks.first(side.first)) * sizeof(Element);
    };
    ranks.queue().drain();  // pending calls use the same slots
    or_tell([&] {
        ranks.require_reachable("in", in.data, held(in), where);
        ranks.require_reachable("out", out.data, held(out), where);
    });
    try {
        or_tell([&] {
            ranks.arrive(static_cast<int>(used));
            for (std::size_t chunk = 0; chunk < used; ++chunk) fetch(chunk);
        });
        if constexpr (Whole::compares) compare_levels<Whole>(ranks.host(), whole);
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
            const int slot = static_cast<int>(chunk % used);
            Element* data = nullptr;
            or_tell([&] {
                ranks.await(slot);
                data = reinterpret_cast<Element*>(ranks.slot(slot, room));
            });
            carry(data, apart ? data + half : data, pieces(chunk));
            const auto pass_on = [&] {
                each_run(out, chunk, [&](std::size_t at, Element* to, std::size_t count) {
                    ranks.store(slot, (apart ? half + at : at) * sizeof(Element), reinterpret_cast<std::byte*>(to),
                                count * sizeof(Element));
                });
                fetch(chunk + used);
            };
            if (chunk + 1 < chunks) or_tell(pass_on);
            else pass_on();  // nobody waits any more
        }
    } catch (...) {
        // no copy may run on in buffers that go with the exception
        for (std::size_t slot = 0; slot < used; ++slot) {
            try {
                ranks.await(static_cast<int>(slot));
            } catch (const error&) {
                // what came first is what counts
            }
        }
        throw;
    }
    for (std::size_t slot = 0; slot < used; ++slot) ranks.await(static_cast<int>(slot));
}

template <class Schedule, class Checking, class Op, class Element, staging_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    using schedule = schedule_of<Schedule, collective::allreduce, Op, host_of<Transport>>;
    // ranks compare the length of the whole with each chunk: counts below 2^32 all have a word of their own
    const auto length = static_cast<std::uint32_t>((count ^ count >> 32) * 0x9e37'79b9U);
    const int all = static_cast<int>(length ^ static_cast<std::uint32_t>(detail));
    stage<Checking, Element, unchecked>(
        ranks, describe<Op, Element, Schedule>(what, count, detail), {count, 1}, {in, 0, 1}, {out, 0, 1},
        [&](const Element* from, Element* to, partition chunk) {
            allreduce_over<schedule, Checking>(ranks.host(), from, to, chunk.count, op, what, all);
        });
}

template <class Schedule, class Checking, class Op, class Element, staging_transport Transport>
void reduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op, int root) {
    using schedule = schedule_of<Schedule, collective::reduce, Op, host_of<Transport>>;
    const int takes = ranks.rank() == root ? 1 : 0;
    stage<Checking, Element>(ranks, describe<Op, Element, Schedule>(collective::reduce, count, root), {count, 1},
                             {in, 0, 1}, {out, 0, takes}, [&](const Element* from, Element* to, partition chunk) {
                                 reduce_over<schedule, Checking>(ranks.host(), from, takes != 0 ? to : nullptr,
                                                                 chunk.count, op, root);
                             });
}

/// `count` elements in, block `rank` of them out.
template <class Schedule, class Checking, class Op, class Element, staging_transport Transport>
void reduce_scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op) {
    using schedule = schedule_of<Schedule, collective::reduce_scatter, Op, host_of<Transport>>;
    const int rank = ranks.rank();
    stage<Checking, Element>(
        ranks, describe<Op, Element, Schedule>(collective::reduce_scatter, count, 0), {count, ranks.size()},
        {in, 0, ranks.size()}, {out, rank, rank + 1}, [&](const Element* from, Element* to, partition chunk) {
            reduce_scatter_over<schedule, Checking>(ranks.host(), from, to + chunk.first(rank), chunk.count, op);
        });
}

/// Block `rank` of `count` elements in, all of them out.
template <class Schedule, class Checking, class Element, staging_transport Transport>
void all_gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    using schedule = schedule_of<Schedule, collective::all_gather, no_op, host_of<Transport>>;
    const int rank = ranks.rank();
    stage<Checking, Element>(
        ranks, describe<no_op, Element, Schedule>(collective::all_gather, count, 0), {count, ranks.size()},
        {in, rank, rank + 1}, {out, 0, ranks.size()}, [&](const Element* from, Element* to, partition chunk) {
            all_gather_over<schedule, Checking>(ranks.host(), from + chunk.first(rank), to, chunk.count);
        });
}

template <class Schedule, class Checking, class Element, staging_transport Transport>
void broadcast_over(Transport& ranks, Element* data, std::size_t count, int root) {
    using schedule = schedule_of<Schedule, collective::broadcast, no_op, host_of<Transport>>;
    const int gives = ranks.rank() == root ? 1 : 0;
    stage<Checking, Element>(ranks, describe<no_op, Element, Schedule>(collective::broadcast, count, root), {count, 1},
                             {data, 0, gives}, {data, gives, 1}, [&](const Element*, Element* to, partition chunk) {
                                 broadcast_over<schedule, Checking>(ranks.host(), to, chunk.count, root);
                             });
}

/// Block `rank` of `count` elements in; all of them out at the root, where `out` must be.
template <class Schedule, class Checking, class Element, staging_transport Transport>
void gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    using schedule = schedule_of<Schedule, collective::gather, no_op, host_of<Transport>>;
    const int rank = ranks.rank();
    const bool takes = rank == root;
    stage<Checking, Element>(ranks, describe<no_op, Element, Schedule>(collective::gather, count, root),
                             {count, ranks.size()}, {in, rank, rank + 1}, {out, 0, takes ? ranks.size() : 0},
                             [&](const Element* from, Element* to, partition chunk) {
                                 gather_over<schedule, Checking>(ranks.host(), from + chunk.first(rank),
                                                                 takes ? to : nullptr, chunk.count, root);
                             });
}

/// `count` elements in at the root, where `in` must be; block `rank` of them out.
template <class Schedule, class Checking, class Element, staging_transport Transport>
void scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    using schedule = schedule_of<Schedule, collective::scatter, no_op, host_of<Transport>>;
    const int rank = ranks.rank();
    const bool gives = rank == root;
    stage<Checking, Element>(ranks, describe<no_op, Element, Schedule>(collective::scatter, count, root),
                             {count, ranks.size()}, {in, 0, gives ? ranks.size() : 0}, {out, rank, rank + 1},
                             [&](const Element* from, Element* to, partition chunk) {
                                 scatter_over<schedule, Checking>(ranks.host(), gives ? from : nullptr,
                                                                  to + chunk.first(rank), chunk.count, root);
                             });
}

/// `p` equal blocks in and out, in one buffer or in two.
template <class Schedule, class Checking, class Element, staging_transport Transport>
void all_to_all_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    using schedule = schedule_of<Schedule, collective::all_to_all, no_op, host_of<Transport>>;
    stage<Checking, Element, Checking, slot_halves::apart>(
        ranks, describe<no_op, Element, Schedule>(collective::all_to_all, count, 0), {count, ranks.size()},
        {in, 0, ranks.size()}, {out, 0, ranks.size()}, [&](const Element* from, Element* to, partition chunk) {
            all_to_all_over<schedule, Checking>(ranks.host(), from, to, chunk.count);
        });
}

template <class Schedule, class Checking, staging_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    barrier_over<schedule_of<Schedule, collective::barrier, no_op, host_of<Transport>>, Checking>(ranks.host(), what);
}

template <collective What, class Schedule, class Op, class Element, staging_transport Transport>
void explain_way(text& line, Transport& ranks, const void* in, std::size_t count) {
    using host = host_of<Transport>;
    const std::size_t chunk = ranks.chunk_bytes(count * sizeof(Element));
    line.append("through host memory in chunks of %zu bytes, %d on their way, each over %s: ", chunk,
                ranks.slot_count(), host::name);
    const std::size_t most = chunk / sizeof(Element);
    explain_way<What, schedule_of<Schedule, What, Op, host>, Op, Element>(line, ranks.host(), in,
                                                                          count < most ? count : most);
}

}  // namespace ddl
