// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/memory.hpp>
#include <ddl/executor/messages.hpp>
#include <ddl/executor/over_cluster.hpp>
#include <ddl/executor/tuning.hpp>

namespace ddl {

/// A schedule's name with its parts: `hierarchical<direct, ring>`.
template <class Schedule>
struct spelled {
    static void append(text& line) { line.append("%s", schedule_name<Schedule>()); }
};
template <class Inner, class... Outer>
struct spelled<hierarchical<Inner, Outer...>> {
    static void append(text& line) {
        line.append("hierarchical<");
        spelled<Inner>::append(line);
        ((line.append(", "), spelled<Outer>::append(line)), ...);
        line.append(">");
    }
};

template <int Ranks, class Few, class Many>
struct spelled<few_or_many<Ranks, Few, Many>> {
    static void append(text& line) {
        line.append("few_or_many<%d, ", Ranks);
        spelled<Few>::append(line);
        line.append(", ");
        spelled<Many>::append(line);
        line.append(">");
    }
};

/// What a call of `count` elements will do over a transport. `Schedule` is resolved for it.
template <collective What, class Schedule, class Op, class Element, class Transport>
text explain_call(Transport& ranks, const void* in, std::size_t count) {
    const std::size_t bytes = count * sizeof(Element);
    text line;
    line.append("%s of %zu %s (%zu bytes)", to_string(What), count, element_name<Element>(), bytes);
    if constexpr (!std::same_as<Op, no_op>) line.append(" by %s", op_name<Op>());
    line.append(" over %s, %d ranks: ", Transport::name, ranks.size());
    explain_way<What, Schedule, Op, Element>(line, ranks, in, count);
    return line;
}

template <collective What, class Schedule, class Op, class Element, memory_transport Transport>
void explain_way(text& line, Transport& ranks, const void* in, std::size_t count) {
    const direct_limits& limits = limits_here<Transport>::all();
    constexpr bool folds_all = What == collective::allreduce || What == collective::reduce;
    constexpr bool own_block = What == collective::all_gather || What == collective::gather;
    constexpr bool blocks = !folds_all && What != collective::broadcast;
    const partition cut{count, ranks.size()};
    // what `in` holds, and what a rank hands out at most
    const std::size_t given = (own_block ? cut.length(ranks.rank()) : count) * sizeof(Element);
    const std::size_t parts = own_block ? 1 : static_cast<std::size_t>(ranks.size());
    const std::size_t bytes = (blocks ? cut.longest() * parts : count) * sizeof(Element);
    const std::size_t mapped_from = folds_all ? limits.mapped : limits.mapped_move;
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        spelled<Chosen>::append(line);
        if constexpr (!std::same_as<Chosen, direct>) {
            line.append(", walked round by round through windows of %zu bytes, as it was named", ranks.window_bytes());
        } else if (bytes <= notice::room) {
            line.append(
                folds_all ? ", one-shot: up to %zu bytes travel with the announcement, and every rank folds all of them"
                          : ", up to %zu bytes travel with the announcement",
                notice::room);
        } else if (folds_all &&
                   bytes <= limits_here<Transport>::longest_one_shot(ranks, What == collective::allreduce) &&
                   (bytes < limits.mapped || ranks.address_of(in, given) == 0)) {
            line.append(", one-shot: so few bytes are staged once, and every rank folds all of them");
        } else if (bytes < mapped_from) {
            line.append(
                ", fused and staged through windows of %zu bytes, below the %zu bytes from which buffers are mapped",
                ranks.window_bytes(), mapped_from);
        } else if (ranks.address_of(in, given) != 0) {
            line.append(", fused and mapped: peers can map this rank's buffer, and if all can, nothing is copied");
        } else {
            line.append(
                ", fused and staged through windows of %zu bytes, for peers cannot map this rank's buffer; a "
                "ddl::buffer would save the copies",
                ranks.window_bytes());
        }
    });
}

/// The most chunks that `rank` sends or receives at once.
template <program Program>
std::size_t longest_transfer(const Program& program, int rank) noexcept {
    int most = 0;
    for (int round = 0; round < program.rounds(); ++round)
        for (int i = 0, width = program.width(rank, round); i < width; ++i) {
            const int chunks = program.at(rank, round, i).count;
            most = chunks > most ? chunks : most;
        }
    return static_cast<std::size_t>(most);
}

template <collective What, class Schedule, class Op, class Element, message_transport Transport>
void explain_way(text& line, Transport& ranks, const void*, std::size_t count) {
    using accumulator = accumulator_t<Op, Element>;
    with_schedule<Schedule>(count * sizeof(Element), company_of(ranks), [&]<class Chosen>() {
        spelled<Chosen>::append(line);
        if (is_selected<Schedule>) line.append(", selected for this size");
        const auto say = [&line](const load_cut& load) {
            if (load.direct) line.append(", in the messages that compare the calls, from each rank to each");
            else if (load.pieces == 0) line.append(", in the messages that compare the calls");
            else line.append(", beside the messages that compare the calls, in pieces of up to %zu bytes", load.piece);
        };
        const char* const unless_unchecked = ", if they are compared";
        constexpr bool among_all = What == collective::reduce_scatter || What == collective::all_gather;
        constexpr bool blocks =
            among_all || What == collective::gather || What == collective::scatter || What == collective::all_to_all;
        using value = std::conditional_t<What == collective::reduce_scatter, accumulator, Element>;
        if constexpr (blocks && suits_riding<What, Chosen, value>)
            if (rides<What, value>(ranks, count)) {
                load_cut load;
                load.direct = blocks_go_directly<What, value>(ranks, count);
                if (What == collective::reduce_scatter && !load.direct &&
                    !scattered_blocks_ride(ranks, count, sizeof(value)))
                    load = whole_load<value>(ranks, count, flow::among_all);
                if (What == collective::scatter && !load.direct)
                    load = whole_load<value>(ranks, count, flow::from_root);
                say(load);
                if (!among_all) line.append(unless_unchecked);
            }
        if constexpr (What == collective::broadcast && suits_contract<Chosen, tree, Element>)
            if (const auto load = whole_load<Element>(ranks, count, flow::from_root); copies_pay(ranks, load)) {
                say(load);
                line.append(unless_unchecked);
            }
        if constexpr (What == collective::reduce && suits_contract<Chosen, tree, accumulator>)
            if (const auto load = whole_load<accumulator>(ranks, count, flow::to_root);
                folds_fit<Op>(ranks, load, flow::to_root)) {
                say(load);
                line.append(unless_unchecked);
            }
        if constexpr (What == collective::allreduce && schedule<Chosen>) {
            const auto program = allreduce_program<Chosen>(ranks.size());
            const load_cut load = whole_load<accumulator>(ranks, count, flow::among_all);
            if (suits_contract<Chosen, recursive_doubling, accumulator> &&
                folds_fit<Op>(ranks, load, flow::among_all)) {
                say(load);
            } else if (halves_fit_contract<Chosen, accumulator>(ranks, count)) {
                line.append(
                    ", %d chunks in %d rounds, of which the first half goes with the messages that compare the calls",
                    program.chunks(), program.rounds());
            } else {
                const std::size_t longest =
                    longest_transfer(program, ranks.rank()) * count / static_cast<std::size_t>(program.chunks());
                line.append(
                    ", %d chunks in %d rounds, in segments of up to %zu bytes", program.chunks(), program.rounds(),
                    cut_of(ranks).length(longest * sizeof(accumulator), sizeof(accumulator), passage::both_ways));
            }
        }
    });
}

template <collective What, class Schedule, class Op, class Element, stacked_transport Transport>
void explain_way(text& line, Transport& ranks, const void*, std::size_t count) {
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() { spelled<Chosen>::append(line); });
    line.append(", inside %s with %d ranks, across %s with %d", std::remove_reference_t<decltype(ranks.node())>::name,
                ranks.node().size(), std::remove_reference_t<decltype(ranks.wire())>::name, ranks.wire().size());
}

template <collective What, class Schedule, class Op, class Element, clustered_transport Transport>
void explain_way(text& line, Transport& ranks, const void* in, std::size_t count) {
    if (ranks.nodes() == 1) {
        line.append("one node, so ");
        using node = std::remove_reference_t<decltype(ranks.node())>;
        return explain_way<What, resolved<typename flattened<Schedule>::type, What, Op, node>, Op, Element>(
            line, ranks.node(), in, count);
    }
    line.append("%d nodes, ", ranks.nodes());
    using wire = std::remove_reference_t<decltype(ranks.wire())>;
    const std::size_t bytes = count * sizeof(Element);
    const auto on_the_wire = [&]<class Flat>() {
        with_schedule<resolved<Flat, What, Op, wire>>(bytes, company_of(ranks.wire()),
                                                      [&]<class Chosen>() { spelled<Chosen>::append(line); });
        line.append(" over %s between all ranks", wire::name);
    };
    if constexpr (What != collective::allreduce) on_the_wire.template operator()<Schedule>();
    else  // which alone goes through both levels
        with_schedule<resolved<Schedule, What, Op, Transport>>(bytes, [&]<class Chosen>() {
            using alone = typename without_nodes<Chosen>::type;
            if (!hierarchy<Chosen> || (!hierarchy<alone> && ranks.nodes() == ranks.size()))
                return on_the_wire.template operator()<alone>();
            spelled<Chosen>::append(line);
            line.append(
                ": reduce-scatter in shared memory, every rank carries its share over %s, all-gather in shared memory",
                wire::name);
        });
}

}  // namespace ddl
