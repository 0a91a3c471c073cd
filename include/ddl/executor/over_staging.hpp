// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/over_cluster.hpp>
#include <ddl/executor/over_levels.hpp>
#include <ddl/executor/over_memory.hpp>
#include <ddl/executor/over_messages.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/executor/refusal.hpp>
#include <ddl/transport/staging_transport.hpp>

// The collectives over ranks whose buffers pass through slots of host memory.
namespace ddl {

template <class Schedule, class Op, class Transport>
using staged_schedule = std::conditional_t<clustered_transport<Transport>, Schedule,
                                           resolved<Schedule, collective::allreduce, Op, Transport>>;

/// An allreduce of chunk after chunk: while the host sides reduce one, the next ones are fetched and the last ones stored.
template <class Schedule, class Checking, class Op, class Element, staging_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective = collective::allreduce, int detail = 0) {
    using host = std::remove_reference_t<decltype(ranks.host())>;
    using schedule = staged_schedule<Schedule, Op, host>;
    const std::size_t fits = ranks.chunk_bytes() / sizeof(Element);
    const std::size_t each = fits != 0 ? fits : 1;
    const std::size_t chunks = count == 0 ? 1 : (count + each - 1) / each;
    const auto slots = static_cast<std::size_t>(ranks.slots());
    // ranks compare the length of the whole with each chunk
    const int all =
        static_cast<int>(static_cast<std::uint32_t>(count * 0x9e37'79b9U) ^ static_cast<std::uint32_t>(detail));
    const auto place = [&](std::size_t chunk) {
        return reinterpret_cast<Element*>(ranks.slot(static_cast<int>(chunk % slots), each * sizeof(Element)));
    };
    const auto fetch = [&](std::size_t chunk) {
        if (chunk >= chunks) return;
        place(chunk);
        ranks.fetch(static_cast<int>(chunk % slots), reinterpret_cast<const std::byte*>(in + chunk * each),
                    segment_length(count, chunk * each, each) * sizeof(Element));
    };
    // what the device refuses leaves the others waiting for a chunk: between two of them they can be told
    const auto or_tell = [&](const auto& copies) { prepared<Checking>(ranks.host(), copies); };
    ranks.queue().drain();  // pending calls use the same slots
    try {
        or_tell([&] {
            ranks.arrive(call_site{to_string(collective::allreduce)});
            for (std::size_t chunk = 0; chunk < slots; ++chunk) fetch(chunk);
        });
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
            const int slot = static_cast<int>(chunk % slots);
            const std::size_t length = segment_length(count, chunk * each, each);
            Element* data = nullptr;
            or_tell([&] {
                ranks.await(slot);
                data = place(chunk);
            });
            allreduce_over<schedule, Checking>(ranks.host(), static_cast<const Element*>(data), data, length, op,
                                               collective::allreduce_n, all);
            const auto pass_on = [&] {
                ranks.store(slot, reinterpret_cast<std::byte*>(out + chunk * each), length * sizeof(Element));
                fetch(chunk + slots);
            };
            if (chunk + 1 < chunks) or_tell(pass_on);
            else pass_on();  // nobody waits any more
        }
    } catch (...) {
        // no copy may run on in buffers that go with the exception
        for (int slot = 0; slot < ranks.slots(); ++slot) {
            try {
                ranks.await(slot);
            } catch (const error&) {
                // what came first is what counts
            }
        }
        throw;
    }
    for (int slot = 0; slot < ranks.slots(); ++slot) ranks.await(slot);
}

template <class Schedule, class Checking, staging_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    using host = std::remove_reference_t<decltype(ranks.host())>;
    barrier_over<staged_schedule<Schedule, no_op, host>, Checking>(ranks.host(), what);
}

template <class Schedule, class Op, class Element, staging_transport Transport>
void explain_way(text& line, Transport& ranks, collective what, const void* in, std::size_t count) {
    using host = std::remove_reference_t<decltype(ranks.host())>;
    line.append("through host memory in chunks of %zu bytes, %d on their way, each over %s: ", ranks.chunk_bytes(),
                ranks.slots(), host::name);
    const std::size_t most = ranks.chunk_bytes() / sizeof(Element);
    explain_way<staged_schedule<Schedule, Op, host>, Op, Element>(line, ranks.host(), what, in,
                                                                  count < most ? count : most);
}

}  // namespace ddl
