// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/memory.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/schedule/program.hpp>

namespace ddl {

/// Runs any program over ranks that map each other's memory: a receive is a load from the sender's window.
///
/// A segment of every chunk lies in the window at a time. Each round has two steps: "what you read from me in this round is
/// there", and "I have read what I needed", after which the owner may write again. Operands that a rank combines with a
/// chunk which it also sends in the same round wait in the window's second half until its readers are done.
///
/// `length(c)`: elements of chunk `c`, equal on all ranks. `holds(c)`: where this rank's value of it is, or null.
/// `wants(c)`: where its value goes in the end, or null. Values travel as `accumulator_t<Op, Element>` and are rounded once.
template <class Op, class Element, memory_transport Transport, program Program, class Length, class Holds, class Wants>
void walk(Transport& ranks, const call& what, bool compares, const Program& program, std::size_t longest, const Op& op,
          Length length, Holds holds, Wants wants) {
    using accumulator = accumulator_t<Op, Element>;
    memory_call<Transport> entry{ranks, what, compares};
    entry.enter();

    call_site where{to_string(what.what), 0};
    half_done guard{ranks};
    guard.begin(where);
    const int rank = ranks.rank();
    const int chunks = program.chunks();
    const std::size_t room = ranks.window_bytes() / 2 / static_cast<std::size_t>(chunks) / sizeof(accumulator);
    if (room == 0) {
        guard.end();
        throw error(errc::invalid_argument, where.operation, rank, -1,
                    "%d chunks of elements of %zu bytes do not fit a window of %zu bytes; use ddl::direct", chunks,
                    sizeof(accumulator), ranks.window_bytes());
    }
    const auto work = [&](int peer, int chunk) {
        return reinterpret_cast<accumulator*>(ranks.window(peer)) + static_cast<std::size_t>(chunk) * room;
    };
    const auto aside = [&](int chunk) {
        return reinterpret_cast<accumulator*>(ranks.window(rank) + ranks.window_bytes() / 2) +
               static_cast<std::size_t>(chunk) * room;
    };

    for (std::size_t begin = 0; begin < longest; begin += room) {
        const auto here = [&](int chunk) { return segment_length(length(chunk), begin, room); };
        for (int chunk = 0; chunk < chunks; ++chunk)
            if (const Element* const value = holds(chunk); value != nullptr)
                kernel::convert(value + begin, work(rank, chunk), here(chunk));
        std::uint64_t ready = ranks.advance();

        for (int round = 0; round < program.rounds(); ++round) {
            where.round = round;
            const int width = program.width(rank, round);
            const auto sent = [&](int chunk) {
                for (int i = 0; i < width; ++i)
                    if (const transfer t = program.at(rank, round, i);
                        t.what == action::send && t.chunk <= chunk && chunk < t.chunk + t.count)
                        return true;
                return false;
            };
            const auto combined_before = [&](int index, int chunk) {
                for (int i = 0; i < index; ++i)
                    if (const transfer t = program.at(rank, round, i);
                        t.what == action::receive_reduce && t.chunk <= chunk && chunk < t.chunk + t.count)
                        return true;
                return false;
            };
            for (int i = 0; i < width; ++i) {
                const transfer t = program.at(rank, round, i);
                if (t.what == action::send) continue;
                ranks.await(t.peer, ready, where);
                for (int chunk = t.chunk; chunk < t.chunk + t.count; ++chunk) {
                    const accumulator* const arrived = work(t.peer, chunk);
                    accumulator* ours = work(rank, chunk);
                    if (t.what == action::receive) {
                        kernel::copy(arrived, ours, here(chunk));
                        continue;
                    }
                    if (sent(chunk)) {
                        if (!combined_before(i, chunk))
                            kernel::copy(static_cast<const accumulator*>(ours), aside(chunk), here(chunk));
                        ours = aside(chunk);
                    }
                    if (t.peer < rank) kernel::combine<kernel::side::left>(arrived, ours, here(chunk), op);
                    else kernel::combine<kernel::side::right>(arrived, ours, here(chunk), op);
                }
            }
            const std::uint64_t read = ranks.advance();
            for (int i = 0; i < width; ++i)
                if (const transfer t = program.at(rank, round, i); t.what == action::send)
                    ranks.await(t.peer, read, where);
            for (int i = 0; i < width; ++i) {
                const transfer t = program.at(rank, round, i);
                if (t.what != action::receive_reduce) continue;
                for (int chunk = t.chunk; chunk < t.chunk + t.count; ++chunk)
                    if (sent(chunk)) kernel::copy<accumulator>(aside(chunk), work(rank, chunk), here(chunk));
            }
            ready = ranks.advance();
        }
        for (int chunk = 0; chunk < chunks; ++chunk)
            if (Element* const to = wants(chunk); to != nullptr)
                kernel::finish(work(rank, chunk), to + begin, here(chunk), op, ranks.size());
    }
    guard.end();
}

}  // namespace ddl
