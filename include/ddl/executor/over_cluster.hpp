// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/arguments.hpp>
#include <ddl/executor/over_levels.hpp>
#include <ddl/executor/tuning.hpp>

// The collectives over nodes with memory of their own and messages between all ranks: `cluster`.
//
// On one node they are those of its memory. On several, hierarchies run level by level, and all other schedules over
// messages between all ranks.
namespace ddl {

/// What a schedule becomes on one node: a hierarchy shrinks to its inner schedule.
template <class Schedule>
struct flattened {
    using type = Schedule;
};
template <hierarchy Schedule>
struct flattened<Schedule> {
    using type = typename Schedule::inner;
};
template <class... Choices>
struct flattened<selected<Choices...>> {
    template <std::size_t Bytes, class Schedule>
    static at_most<Bytes, typename flattened<Schedule>::type> flat(at_most<Bytes, Schedule>);
    template <std::size_t Bytes, int Least, int Most, class Schedule>
    static near_at_most<Bytes, Least, Most, typename flattened<Schedule>::type> flat(
        near_at_most<Bytes, Least, Most, Schedule>);
    template <std::size_t Bytes, int Least, int Most, class Schedule>
    static own_core_at_most<Bytes, Least, Most, typename flattened<Schedule>::type> flat(
        own_core_at_most<Bytes, Least, Most, Schedule>);
    template <std::size_t Bytes, int Least, int Most, class Schedule, nearer... Close>
    static crowded_at_most<Bytes, Least, Most, typename flattened<Schedule>::type, Close...> flat(
        crowded_at_most<Bytes, Least, Most, Schedule, Close...>);
    template <std::size_t Bytes, int Least, int Most, class Schedule, nearer... Close>
    static long_whole_at_most<Bytes, Least, Most, typename flattened<Schedule>::type, Close...> flat(
        long_whole_at_most<Bytes, Least, Most, Schedule, Close...>);
    template <class Schedule>
    static otherwise<typename flattened<Schedule>::type> flat(otherwise<Schedule>);
    using type = selected<decltype(flat(Choices{}))...>;
};

/// What a schedule becomes where each node has one rank: a hierarchy of two levels shrinks to its outer schedule.
template <class Schedule>
struct without_nodes {
    using type = Schedule;
};
template <hierarchy Schedule>
    requires textbook<typename Schedule::outer>
struct without_nodes<Schedule> {
    using type = typename Schedule::outer;
};

/// Calls `use.template operator()<Schedule>(ranks)` with the node's ranks if there is but one node, else with the wire.
template <collective What, class Schedule, class Op, clustered_transport Transport, class Use>
void on_one_level(Transport& ranks, Use use) {
    using node = std::remove_reference_t<decltype(ranks.node())>;
    using wire = std::remove_reference_t<decltype(ranks.wire())>;
    ranks.begin({to_string(What), 0});
    if (ranks.nodes() == 1)
        use.template operator()<resolved<typename flattened<Schedule>::type, What, Op, node>>(ranks.node());
    else use.template operator()<resolved<Schedule, What, Op, wire>>(ranks.wire());
}

template <clustered_transport Transport>
agreement agree(Transport& ranks, const agreement& ours, const call_site& where) {
    return agree(ranks.wire(), ours, where);
}

/// The pieces in which a long vector of `bytes` passes through the levels, so that one is reduced in memory while another
/// crosses the wire: long enough for a segment to each rank.
inline int pieces_of(std::size_t bytes, int ranks, std::size_t segment) noexcept {
    constexpr std::size_t shortest = std::size_t{4} << 20;
    const std::size_t each = static_cast<std::size_t>(ranks) * segment;
    const std::size_t pieces = bytes / (each > shortest ? each : shortest);
    return pieces > 1 ? static_cast<int>(pieces) : 1;
}

template <hierarchy Schedule, class Accumulator, class Op, clustered_transport Transport>
void fold_in_place(Transport& ranks, Accumulator* data, std::size_t count, const Op& op, collective part_of) {
    using inner = typename Schedule::inner;
    auto& node = ranks.node();
    auto& wire = ranks.ordered_wire();
    using wire_transport = std::remove_reference_t<decltype(wire)>;
    const shape groups = shape::listed(ranks.grouping(), ranks.nodes());
    const auto across = Schedule::across(groups);
    const int last_round = across.rounds() - 1;
    const int group = groups.group_of(wire.rank());
    const inside_groups<inner> down{groups, across.cut};
    const partition pieces{count, pieces_of(count * sizeof(Accumulator), wire.size(), cut_of(wire).bytes)};
    const auto inside = [&]<bool Gathers>(int piece) {
        const node_shares shares{{pieces.length(piece), across.chunks()}, across.cut, node.size()};
        inside_node<inner, Gathers>(node, down, groups.first(group), shares, data + pieces.first(piece), op, part_of);
    };
    inside.template operator()<false>(0);
    const call what = describe<no_op, Accumulator, Schedule>(part_of, count, 0);
    for (int piece = 0; piece < pieces.parts; ++piece) {
        message_call<unchecked, wire_transport> here{wire, what};
        const auto place = even_chunks{{pieces.length(piece), across.chunks()}};
        here.template reserve<Accumulator>(across, 0, place);
        here.run(across, data + pieces.first(piece), place, combine_bytes<Accumulator>(op), [&](int round) {
            if (round == 0 && piece > 0) inside.template operator()<true>(piece - 1);
            if (round == last_round && piece + 1 < pieces.parts) inside.template operator()<false>(piece + 1);
        });
        here.end();
    }
    inside.template operator()<true>(pieces.parts - 1);
}

template <class Schedule, class Checking, class Op, class Element, clustered_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    const auto flat = [&]<class Chosen>(auto& level) {
        allreduce_over<Chosen, Checking>(level, in, out, count, op, what, detail);
    };
    if (ranks.nodes() == 1) return on_one_level<collective::allreduce, Schedule, Op>(ranks, flat);
    with_schedule<resolved<Schedule, collective::allreduce, Op, Transport>>(
        count * sizeof(Element), [&]<class Chosen>() {
            if constexpr (hierarchy<Chosen>) {
                using alone = typename without_nodes<Chosen>::type;
                if constexpr (!hierarchy<alone>)
                    if (ranks.nodes() == ranks.size())
                        return on_one_level<collective::allreduce, alone, Op>(ranks, flat);
                if (!commutes<Op> && !ranks.ordered())
                    refuse<Checking>(
                        ranks,
                        error(errc::invalid_argument, "allreduce", ranks.rank(), -1,
                              "the ranks of a node are not consecutive, so a hierarchy cannot keep their order; write "
                              "ddl::recursive_doubling"));
                compare_levels<Checking>(ranks, describe<Op, Element, Schedule>(what, count, detail));
                const shape groups = shape::listed(ranks.grouping(), ranks.nodes());
                require_proof<collective::allreduce, Op, Chosen>(Chosen::allreduce(groups), ranks.rank(), groups, 0);
                fold_levels<Chosen>(ranks, in, out, count, op, true, what);
            } else {
                on_one_level<collective::allreduce, Chosen, Op>(ranks, flat);
            }
        });
}

template <class Schedule, class Checking, class Op, class Element, clustered_transport Transport>
void reduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op, int root) {
    on_one_level<collective::reduce, Schedule, Op>(
        ranks, [&]<class Chosen>(auto& level) { reduce_over<Chosen, Checking>(level, in, out, count, op, root); });
}
template <class Schedule, class Checking, class Op, class Element, clustered_transport Transport>
void reduce_scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op) {
    on_one_level<collective::reduce_scatter, Schedule, Op>(
        ranks, [&]<class Chosen>(auto& level) { reduce_scatter_over<Chosen, Checking>(level, in, out, count, op); });
}
template <class Schedule, class Checking, class Element, clustered_transport Transport>
void all_gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    on_one_level<collective::all_gather, Schedule, no_op>(
        ranks, [&]<class Chosen>(auto& level) { all_gather_over<Chosen, Checking>(level, in, out, count); });
}
template <class Schedule, class Checking, class Element, clustered_transport Transport>
void broadcast_over(Transport& ranks, Element* data, std::size_t count, int root) {
    on_one_level<collective::broadcast, Schedule, no_op>(
        ranks, [&]<class Chosen>(auto& level) { broadcast_over<Chosen, Checking>(level, data, count, root); });
}
template <class Schedule, class Checking, class Element, clustered_transport Transport>
void gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    on_one_level<collective::gather, Schedule, no_op>(
        ranks, [&]<class Chosen>(auto& level) { gather_over<Chosen, Checking>(level, in, out, count, root); });
}
template <class Schedule, class Checking, class Element, clustered_transport Transport>
void scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    on_one_level<collective::scatter, Schedule, no_op>(
        ranks, [&]<class Chosen>(auto& level) { scatter_over<Chosen, Checking>(level, in, out, count, root); });
}
template <class Schedule, class Checking, class Element, clustered_transport Transport>
void all_to_all_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    on_one_level<collective::all_to_all, Schedule, no_op>(
        ranks, [&]<class Chosen>(auto& level) { all_to_all_over<Chosen, Checking>(level, in, out, count); });
}
template <class Schedule, class Checking, clustered_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    on_one_level<collective::barrier, Schedule, no_op>(
        ranks, [&]<class Chosen>(auto& level) { barrier_over<Chosen, Checking>(level, what); });
}

}  // namespace ddl
