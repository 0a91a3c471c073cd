// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/block_layout.hpp>
#include <ddl/executor/one_exchange.hpp>
#include <ddl/executor/over_contract.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/schedule/halving_direct_or.hpp>
#include <ddl/schedule/rooted.hpp>
#include <ddl/schedule/selected.hpp>

// The collectives over ranks that send each other messages.
namespace ddl {

/// `place` for chunks that are packed in the order of their program.
struct packed_chunks {
    const block_layout& layout;
    std::size_t length(const transfer& t) const noexcept {
        const int last = t.chunk + t.count - 1;
        return layout.place(last) + layout.length(last) - layout.place(t.chunk);
    }
    template <class Element>
    byte_range operator()(Element* work, const transfer& t) const noexcept {
        return bytes_of(work + layout.place(t.chunk), length(t));
    }
};

/// `place` for chunks where they lie in the vector, which has no place for those that do not lie together.
struct chunks_in_vector {
    const block_layout& layout;
    template <class Element>
    byte_range operator()(const Element* vector, const transfer& t) const noexcept {
        std::size_t end = layout.first(t.chunk);
        for (int c = t.chunk; c < t.chunk + t.count; end += layout.length(c), ++c)
            if (layout.first(c) != end) return {nullptr, 0};
        return bytes_of(vector + layout.first(t.chunk), end - layout.first(t.chunk));
    }
};

/// `place` for a rank that holds its own block alone, unless it `passes_on` those of others.
template <class Place, class Element>
auto own_block(Place place, bool passes_on, const Element* block, std::size_t length) noexcept {
    return [=](Element* work, const transfer& t) { return passes_on ? place(work, t) : bytes_of(block, length); };
}

/// Whether a rank sends or receives a chunk that is not its own.
template <program Program>
bool touches_others(const Program& program, int rank) noexcept {
    for (int round = 0; round < program.rounds(); ++round)
        for (int i = 0, width = program.width(rank, round); i < width; ++i)
            if (const transfer t = program.at(rank, round, i); t.chunk != rank || t.count != 1) return true;
    return false;
}

/// Folds the vectors of all ranks by `program`. The result is finished into `out` of the ranks that `take` it.
template <class Op, class Element, class Checking, message_transport Transport>
void fold_over(message_call<Checking, Transport>& here, const program_view& program, const Element* in, Element* out,
               std::size_t count, const Op& op, int size, bool takes) {
    using accumulator = accumulator_t<Op, Element>;
    constexpr bool in_place = std::same_as<accumulator, Element>;
    const auto place = even_chunks{{count, program.chunks()}};
    const bool works_in_out = in_place && takes;
    accumulator* work = here.template reserve<accumulator>(program, works_in_out ? 0 : count, place);
    const auto combine = combine_bytes<accumulator>(op);
    if constexpr (in_place) {
        if (works_in_out) work = out;
        const auto in_input = [&](const transfer& t) -> const std::byte* { return place(in, t).data; };
        const auto wanted = [takes](int) { return takes; };
        const input_view apart{in_input, wanted};
        here.run(program, work, place, combine, no_meanwhile, work != in ? &apart : nullptr);
    } else {
        kernel::convert(in, work, count);
        here.run(program, work, place, combine);
    }
    if (takes && !(in_place && !finishes<Op, Element>)) kernel::finish(work, out, count, op, size);
    here.end();
}

/// The program of an allreduce over `wire`, which may know which of its ranks lie closer.
template <class Schedule, message_transport Transport>
auto allreduce_program_over(const Transport& wire) noexcept {
    if constexpr (requires {
                      wire.dealt_in_turn();
                      Schedule::allreduce(wire.size(), nearer::neighbours);
                  })
        return Schedule::allreduce(wire.size(), wire.dealt_in_turn() ? nearer::halves_apart : nearer::neighbours);
    else return allreduce_program<Schedule>(wire.size());
}

template <class Schedule, class Checking, class Op, class Element, message_transport Transport>
void allreduce_over(Transport& wire, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    using accumulator = accumulator_t<Op, Element>;
    const call told = describe<Op, Element, Schedule>(what, count, detail);
    if (allreduce_in_one_exchange<Schedule, Checking>(wire, told, in, out, count, op)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(count * sizeof(Element), company_of(wire), [&]<class Chosen>() {
        // be it unchecked: in messages that go among all a comparison is for nothing
        if constexpr (suits_contract<Chosen, recursive_doubling, accumulator>)
            if (const auto cut = whole_load<accumulator>(wire, count, flow::among_all);
                folds_fit<Op>(wire, cut, flow::among_all)) {
                kernel::finish(fold_with_contract(here, wire, cut, in, out, count, op, flow::among_all, 0), out, count,
                               op, wire.size());
                return here.end();
            }
        if constexpr (std::same_as<Chosen, recursive_halving>)
            if (halves_fit_contract<Chosen, accumulator>(wire, count))
                return halve_with_contract(here, wire, in, out, count, op);
        here.compare();
        fold_over(here,
                  here.template proved_rounds<collective::allreduce, Op, Chosen>(allreduce_program_over<Chosen>(wire)),
                  in, out, count, op, wire.size(), true);
    });
}

template <class Schedule, class Checking, class Op, class Element, message_transport Transport>
void reduce_over(Transport& wire, const Element* in, Element* out, std::size_t count, const Op& op, int root) {
    using accumulator = accumulator_t<Op, Element>;
    const call told = describe<Op, Element, Schedule>(collective::reduce, count, root);
    if (reduce_in_one_exchange<Schedule, Checking>(wire, told, in, out, count, op)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(count * sizeof(Element), company_of(wire), [&]<class Chosen>() {
        if constexpr (Checking::compares && suits_contract<Chosen, tree, accumulator>)
            if (const auto cut = whole_load<accumulator>(wire, count, flow::to_root);
                folds_fit<Op>(wire, cut, flow::to_root)) {
                const bool takes = wire.rank() == root;
                const accumulator* const result =
                    fold_with_contract(here, wire, cut, in, takes ? out : nullptr, count, op, flow::to_root, root);
                if (takes) kernel::finish(result, out, count, op, wire.size());
                return here.end();
            }
        here.compare();
        fold_over(here,
                  here.template proved_rounds<collective::reduce, Op, Chosen>(reduce_program<Chosen>(wire.size(), root),
                                                                              root),
                  in, out, count, op, wire.size(), wire.rank() == root);
    });
}

/// `count` elements in, block `rank` of them out.
template <class Schedule, class Checking, class Op, class Element, message_transport Transport>
void reduce_scatter_over(Transport& wire, const Element* in, Element* out, std::size_t count, const Op& op) {
    using accumulator = accumulator_t<Op, Element>;
    const call told = describe<Op, Element, Schedule>(collective::reduce_scatter, count, 0);
    if (reduce_scatter_in_one_exchange<Schedule, Checking>(wire, told, in, out, count, op)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(count * sizeof(Element), company_of(wire), [&]<class Chosen>() {
        if constexpr (suits_riding<collective::reduce_scatter, Chosen, accumulator>)
            if (rides<collective::reduce_scatter, accumulator>(wire, count))
                return reduce_scatter_with_contract(here, wire, in, out, count, op);
        here.compare();
        const auto program = here.template proved_rounds<collective::reduce_scatter, Op, Chosen>(
            reduce_scatter_program<Chosen>(wire.size()));
        const block_layout layout{program, count};
        const auto place = packed_chunks{layout};
        accumulator* const work = here.template reserve<accumulator>(program, count, place);
        const auto combine = combine_bytes<accumulator>(op);
        if constexpr (std::same_as<accumulator, Element>) {
            const auto in_vector = [&](const transfer& t) -> const std::byte* {
                return chunks_in_vector{layout}(in, t).data;
            };
            const auto is_own = [&](int c) { return layout.owner(c) == wire.rank(); };
            const input_view apart{in_vector, is_own};
            here.run(program, work, place, combine, no_meanwhile, &apart);
        } else {
            for (int c = 0; c < layout.chunks(); ++c)
                kernel::convert(in + layout.first(c), work + layout.place(c), layout.length(c));
            here.run(program, work, place, combine);
        }
        const std::size_t own = partition{count, wire.size()}.first(wire.rank());
        for (int c = 0; c < layout.chunks(); ++c)
            if (layout.owner(c) == wire.rank())
                kernel::finish(work + layout.place(c), out + (layout.first(c) - own), layout.length(c), op,
                               wire.size());
        here.end();
    });
}

/// Block `rank` of `count` elements in, all of them out.
template <class Schedule, class Checking, class Element, message_transport Transport>
void all_gather_over(Transport& wire, const Element* in, Element* out, std::size_t count) {
    const call told = describe<no_op, Element, Schedule>(collective::all_gather, count, 0);
    const partition blocks{count, wire.size()};
    const int rank = wire.rank();
    if (all_gather_in_one_exchange<Schedule, Checking>(wire, told, in, out, count)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(count * sizeof(Element), company_of(wire), [&]<class Chosen>() {
        if constexpr (suits_riding<collective::all_gather, Chosen, Element>)
            if (rides<collective::all_gather, Element>(wire, count))
                return gather_with_contract(here, wire, in, out, count, flow::among_all, 0);
        if constexpr (Checking::compares && std::same_as<Chosen, direct>)
            if (blocks_follow<Element>(wire, blocks)) return gather_blocks_with_contract(here, wire, in, out, count);
        here.compare();
        const auto program =
            here.template proved_rounds<collective::all_gather, no_op, Chosen>(all_gather_program<Chosen>(wire.size()));
        constexpr bool in_order = owns_in_rank_order<decltype(all_gather_program<Chosen>(wire.size()))>;
        const block_layout layout{program, count};
        const auto place = packed_chunks{layout};
        Element* work = here.template reserve<Element>(program, in_order ? 0 : count, place);
        if (in_order) work = out;
        const std::size_t own = blocks.first(rank);
        for (int c = 0; c < layout.chunks(); ++c)
            if (layout.owner(c) == rank)
                kernel::copy(in + (layout.first(c) - own), work + layout.place(c), layout.length(c));
        here.run(program, work, place, no_combine);
        for (int c = 0; c < layout.chunks() && !in_order; ++c)
            kernel::copy(work + layout.place(c), out + layout.first(c), layout.length(c));
        here.end();
    });
}

template <class Schedule, class Checking, class Element, message_transport Transport>
void broadcast_over(Transport& wire, Element* data, std::size_t count, int root) {
    const std::size_t bytes = count * sizeof(Element);
    const call told = describe<no_op, Element, Schedule>(collective::broadcast, count, root);
    if (broadcast_in_one_exchange<Schedule, Checking>(wire, told, data, count)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(bytes, company_of(wire), [&]<class Chosen>() {
        if constexpr (Checking::compares && suits_contract<Chosen, tree, Element>)
            if (const auto cut = whole_load<Element>(wire, count, flow::from_root); copies_pay(wire, cut)) {
                const std::byte* const result = carry_from_root(here, wire, cut, data, root);
                if (wire.rank() != root) kernel::copy(result, reinterpret_cast<std::byte*>(data), bytes);
                return;
            }
        here.compare();
        const auto program = here.template proved_rounds<collective::broadcast, no_op, Chosen>(
            broadcast_program<Chosen>(wire.size(), root), root);
        const auto place = even_chunks{{count, program.chunks()}};
        here.template reserve<Element>(program, 0, place);
        here.run(program, data, place, no_combine);
        here.end();
    });
}

/// Block `rank` of `count` elements in; all of them out at the root, where `out` must be.
template <class Schedule, class Checking, class Element, message_transport Transport>
void gather_over(Transport& wire, const Element* in, Element* out, std::size_t count, int root) {
    const call told = describe<no_op, Element, Schedule>(collective::gather, count, root);
    const partition blocks{count, wire.size()};
    const int rank = wire.rank();
    if (gather_in_one_exchange<Schedule, Checking>(wire, told, in, out, count)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(count * sizeof(Element), company_of(wire), [&]<class Chosen>() {
        if constexpr (Checking::compares && suits_riding<collective::gather, Chosen, Element>)
            if (rides<collective::gather, Element>(wire, count))
                return gather_with_contract(here, wire, in, out, count, flow::to_root, root);
        here.compare();
        const auto program =
            here.template proved_rounds<collective::gather, no_op, Chosen>(Chosen::gather(wire.size(), root), root);
        const auto place = even_chunks{blocks};
        // only the root, and ranks that pass on what is not theirs, hold more than their own block
        const bool passes_on = rank == root || touches_others(program, rank);
        Element* work = here.template reserve<Element>(program, rank != root && passes_on ? count : 0, place);
        if (rank == root) work = out;
        if (passes_on) kernel::copy(in, work + blocks.first(rank), blocks.length(rank));
        here.run(program, work, own_block(place, passes_on, in, blocks.length(rank)), no_combine);
        here.end();
    });
}

/// `count` elements in at the root, where `in` must be; block `rank` of them out.
template <class Schedule, class Checking, class Element, message_transport Transport>
void scatter_over(Transport& wire, const Element* in, Element* out, std::size_t count, int root) {
    const call told = describe<no_op, Element, Schedule>(collective::scatter, count, root);
    const partition blocks{count, wire.size()};
    const int rank = wire.rank();
    if (scatter_in_one_exchange<Schedule, Checking>(wire, told, in, out, count)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(count * sizeof(Element), company_of(wire), [&]<class Chosen>() {
        if constexpr (Checking::compares && suits_riding<collective::scatter, Chosen, Element>)
            if (rides<collective::scatter, Element>(wire, count))
                return scatter_with_contract(here, wire, in, out, count, root);
        here.compare();
        const auto program =
            here.template proved_rounds<collective::scatter, no_op, Chosen>(Chosen::scatter(wire.size(), root), root);
        const auto place = even_chunks{blocks};
        const bool passes_on = rank == root || touches_others(program, rank);
        Element* work = here.template reserve<Element>(program, rank != root && passes_on ? count : 0, place);
        if (rank == root) work = const_cast<Element*>(in);  // the root only sends
        here.run(program, work, own_block(place, passes_on, out, blocks.length(rank)), no_combine);
        if (passes_on) kernel::copy(work + blocks.first(rank), out, blocks.length(rank));
        here.end();
    });
}

/// How the blocks of an all-to-all are sliced. In place slices of what leaves are copied, for others take their place. On one host a
/// slice is a segment, so that who copies none posts all of them at once; cores that copy move messages, too, and one slice after the
/// other stays in their caches. Else slices are so long that the wait at the end of each is short beside it, and the next is copied
/// while one is under way.
struct block_slices {
    bool near;

    /// Bytes of a slice of each block.
    constexpr std::size_t bytes() const noexcept { return std::size_t{near ? 1U : 4U} << 20; }
    /// Of the last one at most. A rest that is so short that it would be cut into pieces goes with it: who posts all slices at once
    /// does not cut it so.
    constexpr std::size_t most_bytes(const segmenting& cut) const noexcept {
        return bytes() + (near ? cut.longest_in_pieces() : bytes());
    }
    constexpr bool copies_ahead() const noexcept { return !near; }
};

/// `p` equal blocks of `count / p` elements in, block `r` for rank `r`; as many out, block `r` from rank `r`. `in` and `out` are
/// one buffer or do not overlap: of one, slices of what leaves are copied. Ranks do not know who is in place, and all go slice by
/// slice; in one round whose messages are slices, who is not posts all of them at once.
template <class Schedule, class Checking, class Element, message_transport Transport>
void all_to_all_over(Transport& wire, const Element* in, Element* out, std::size_t count) {
    const call told = describe<no_op, Element, Schedule>(collective::all_to_all, count, 0);
    const int size = wire.size();
    const int rank = wire.rank();
    const partition blocks{count, size};
    if (all_to_all_in_one_exchange<Schedule, Checking>(wire, told, in, out, count)) return;
    message_call<Checking, Transport> here{wire, told};
    with_schedule<Schedule>(count * sizeof(Element), company_of(wire), [&]<class Chosen>() {
        if constexpr (Checking::compares && suits_riding<collective::all_to_all, Chosen, Element>)
            if (rides<collective::all_to_all, Element>(wire, count))
                return exchange_with_contract(here, wire, in, out, count);
        if constexpr (Checking::compares && std::same_as<Chosen, direct>)
            if (blocks_follow<Element>(wire, blocks))
                return exchange_blocks_with_contract(here, wire, in, out, blocks.longest());
        here.compare();
        const auto program =
            here.template proved_rounds<collective::all_to_all, no_op, Chosen>(Chosen::all_to_all(size));
        const std::size_t each = blocks.longest();
        const segmenting& segments = cut_of(wire);
        const block_slices cut{company_of(wire).near};
        const std::size_t slice = std::max<std::size_t>(cut.bytes() / sizeof(Element), 1);
        const std::size_t most = std::max<std::size_t>(cut.most_bytes(segments) / sizeof(Element), 1);
        const std::size_t slice_bytes = slice * sizeof(Element);
        const bool is_message = slice_bytes > segments.longest_in_pieces() &&
                                segments.length(slice_bytes, sizeof(Element), passage::one_way) == slice_bytes;
        const bool at_once = in != out && program.rounds() == 1 && is_message;
        const auto length = [&](std::size_t begin) { return at_once || each - begin <= most ? each - begin : slice; };
        const std::size_t room = in == out ? std::min(each, most) * static_cast<std::size_t>(size - 1) : 0;
        const std::size_t areas = cut.copies_ahead() && length(0) < each ? 2 : 1;
        const auto nothing = [](Element*, const transfer&) { return byte_range{nullptr, 0}; };
        Element* const copies = here.template reserve<Element>(program, areas * room, nothing);
        const auto copy_of = [&](int to, std::size_t begin) {
            const auto nth = static_cast<std::size_t>(to - (to > rank));
            return copies + begin / slice % areas * room + nth * length(begin);
        };
        const auto copy_slice = [&](std::size_t begin) {
            for (int to = 0; to < size && in == out && begin < each; ++to)
                if (to != rank) kernel::copy(in + blocks.first(to) + begin, copy_of(to, begin), length(begin));
        };
        copy_slice(0);
        kernel::copy(in + blocks.first(rank), out + blocks.first(rank), each);
        for (std::size_t begin = 0, next; begin < each; begin = next) {
            next = begin + length(begin);
            const auto place = [&](Element*, const transfer& t) {
                const int from = t.chunk / size, to = t.chunk % size;
                const Element* const at = from != rank ? out + blocks.first(from) + begin
                                          : in == out  ? copy_of(to, begin)
                                                       : in + blocks.first(to) + begin;
                return bytes_of(at, length(begin));
            };
            here.run(program, out, place, no_combine, [&](int round) {
                if (round == 0 && areas == 2) copy_slice(next);
            });
            if (areas == 1) copy_slice(next);
        }
        here.end();
    });
}

/// Nobody leaves before everybody has come. What is compared is a barrier already.
template <class Schedule, class Checking, message_transport Transport>
void barrier_over(Transport& wire, collective what = collective::barrier) {
    const call told = describe<no_op, std::byte, Schedule>(what, 0, 0);
    if (barrier_in_one_exchange(wire, told)) return;
    message_call<checked, Transport> here{wire, told};
    here.compare();
    here.end();
}

}  // namespace ddl
