// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/over_memory.hpp>
#include <ddl/executor/over_messages.hpp>
#include <ddl/executor/tuning.hpp>
#include <ddl/schedule/hierarchical.hpp>

// The collectives over ranks whose levels have a transport each.
namespace ddl {

/// A program of all ranks as the ranks of one group see it: `first` is the rank of the group's first, `step` lies between
/// its members.
template <program Whole>
struct group_view {
    Whole whole;
    int members;
    int first;
    int step;
    constexpr int size() const noexcept { return members; }
    constexpr int chunks() const noexcept { return whole.chunks(); }
    constexpr int rounds() const noexcept { return whole.rounds(); }
    constexpr int width(int rank, int round) const noexcept { return whole.width(first + rank * step, round); }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        const transfer t = whole.at(first + rank * step, round, index);
        return {t.what, (t.peer - first) / step, t.chunk, t.count};
    }
};

/// An op whose last step is left for later: values stay what they are accumulated in.
template <class Op>
struct unfinished {
    static constexpr bool commutative = commutes<Op>;
    template <class Element>
    using accumulator = Element;
    const Op& op;
    template <class Accumulator>
    constexpr Accumulator operator()(const Accumulator& left, const Accumulator& right) const {
        return op(left, right);
    }
};

/// Where the share of each rank of a node lies.
struct node_shares {
    partition cut;
    slicing slices;
    int members;
    std::size_t first(int position) const noexcept {
        return cut.first(slices.first(position, members) * slices.inner * slices.outer);
    }
    std::size_t length(int position) const noexcept { return first(position + 1) - first(position); }
    std::size_t longest() const noexcept {
        std::size_t most = 0;
        for (int i = 0; i < members; ++i) most = length(i) > most ? length(i) : most;
        return most;
    }
};

/// Reduce-scatter (`Gathers` false) or all-gather among the ranks of a node, in place in `data`, of their shares.
/// `down` is `Inner`'s reduce-scatter in every group; `part_of` is what the caller called.
template <class Inner, bool Gathers, class Accumulator, class Op, memory_transport Node>
void inside_node(Node& node, const inside_groups<Inner>& down, int first, const node_shares& shares, Accumulator* data,
                 const Op& op, collective part_of) {
    const call what = describe<no_op, Accumulator, Inner>(part_of, shares.cut.count, 0);
    const int rank = node.rank();
    if constexpr (std::same_as<Inner, direct> && Gathers) {
        direct_move(memory_call{node, what, false},
                    published_blocks{static_cast<const Accumulator*>(data), shares.cut.count, 1,
                                     [&](int peer, int) { return shares.first(peer); },
                                     [&](int peer, int) { return shares.length(peer); }, shares.longest()},
                    shares.cut.count * static_cast<std::size_t>(node.size()), [&](auto copy) {
                        for (int i = 1; i < node.size(); ++i) {
                            const int peer = (rank + i) % node.size();
                            copy(peer, 0, data + shares.first(peer));
                        }
                    });
    } else if constexpr (std::same_as<Inner, direct>) {
        direct_fold_blocks(
            memory_call{node, what, false},
            published_blocks{static_cast<const Accumulator*>(data), shares.cut.count, node.size(),
                             [&](int, int block) { return shares.first(block); },
                             [&](int, int block) { return shares.length(block); }, shares.longest(), rank},
            data + shares.first(rank), op);
    } else {
        const auto owns = [&](int chunk) {
            return shares.cut.first(chunk) >= shares.first(rank) && shares.cut.first(chunk) < shares.first(rank + 1);
        };
        const auto length = [&](int chunk) { return shares.cut.length(chunk); };
        const auto value = [&](int chunk) { return data + shares.cut.first(chunk); };
        if constexpr (Gathers)
            walk<keep, Accumulator>(
                node, what, false, group_view<mirror<inside_groups<Inner>>>{{down}, node.size(), first, 1},
                shares.cut.longest(), keep{}, length, [&](int c) { return owns(c) ? value(c) : nullptr; }, value);
        else
            walk<Op, Accumulator>(node, what, false, group_view<inside_groups<Inner>>{down, node.size(), first, 1},
                                  shares.cut.longest(), op, length, value,
                                  [&](int c) { return owns(c) ? value(c) : nullptr; });
    }
}

/// The same among ranks that send each other messages.
template <class Inner, bool Gathers, class Accumulator, class Op, message_transport Node>
void inside_node(Node& node, const inside_groups<Inner>& down, int first, const node_shares& shares, Accumulator* data,
                 const Op& op, collective part_of) {
    using phase = std::conditional_t<Gathers, mirror<inside_groups<Inner>>, inside_groups<Inner>>;
    message_call<unchecked, Node> here{node, describe<no_op, Accumulator, Inner>(part_of, shares.cut.count, 0)};
    const group_view<phase> program{{down}, node.size(), first, 1};
    const auto place = even_chunks{shares.cut};
    here.template reserve<Accumulator>(program, 0, place);
    here.run(program, data, place, combine_bytes<Accumulator>(op));
    here.end();
}

/// An allreduce in place whose calls have been compared, and whose op leaves values unfinished.
template <class Schedule, class Accumulator, class Op, communicator Transport>
void fold_in_place(Transport& ranks, Accumulator* data, std::size_t count, const Op& op, collective part_of) {
    allreduce_over<Schedule, unchecked>(ranks, static_cast<const Accumulator*>(data), data, count, op, part_of);
}

template <class Schedule>
concept hierarchy = requires {
    typename Schedule::inner;
    typename Schedule::outer;
};

template <hierarchy Schedule, class Accumulator, class Op, stacked_transport Transport>
void fold_in_place(Transport& ranks, Accumulator* data, std::size_t count, const Op& op, collective part_of) {
    using inner = typename Schedule::inner;
    auto& node = ranks.node();
    const int members = node.size();
    const slicing slices{members, reduce_scatter_program<inner>(members).chunks() / members, 1};
    const node_shares shares{{count, slices.chunks()}, slices, members};
    const inside_groups<inner> down{members, slices};
    inside_node<inner, false>(node, down, 0, shares, data, op, part_of);
    fold_in_place<typename Schedule::outer>(ranks.wire(), data + shares.first(node.rank()), shares.length(node.rank()),
                                            op, part_of);
    inside_node<inner, true>(node, down, 0, shares, data, op, part_of);
}

/// What all ranks say of a call, joined: on every rank the same.
template <memory_transport Transport>
agreement agree(Transport& ranks, const agreement& ours, const call_site& where) {
    ranks.begin(where);
    static_assert(sizeof ours + memory_call<Transport>::end_of_slot <= Transport::slot_bytes());
    std::memcpy(ranks.slot(ranks.rank()), &ours, sizeof ours);
    ranks.notice_of(ranks.rank()).fingerprint = fingerprint(ours.first);
    ranks.post();
    agreement all;
    for (int peer = 0; peer < ranks.size(); ++peer) {
        ranks.await_notice(peer, where);
        agreement theirs;
        std::memcpy(&theirs, ranks.slot(peer), sizeof theirs);
        if (peer == 0) all = theirs;
        else all.join(theirs);
    }
    if (all.differs >= 0) ranks.turn_alike();  // who called something else may have turned its staging
    return all;
}
template <message_transport Transport>
agreement agree(Transport& ranks, const agreement& ours, const call_site& where) {
    ranks.begin(where);
    return join_agreements(ranks, ours, where);
}
template <stacked_transport Transport>
agreement agree(Transport& ranks, const agreement& ours, const call_site& where) {
    try {
        return agree(ranks.wire(), agree(ranks.node(), ours, where), where);
    } catch (const error& failure) {
        ranks.fail(failure.code(), failure.what());  // what one level has met, the others must hear of
        throw;
    }
}
template <class Checking, class Transport>
void compare_levels(Transport& ranks, call what) {
    const call_site where{to_string(what.what), 0};
    if constexpr (!memory_transport<Transport>) ranks.begin(where);  // there a call begins once, when it is compared
    // as calls that know no levels do, which a rank may make by mistake
    const auto compare_over = [&](auto& wire) {
        what.limits = cut_fingerprint(wire);
        compare_calls(wire, what, where);
    };
    if constexpr (!Checking::compares) return;
    else if constexpr (memory_transport<Transport>) memory_call{ranks, what, true}.enter();
    else if constexpr (message_transport<Transport>) compare_over(ranks);
    else if constexpr (clustered_transport<Transport>) {
        if (ranks.nodes() == 1) return compare_levels<Checking>(ranks.node(), what);  // as one node's calls go
        try {
            ranks.wire().begin(where);
            compare_over(ranks.wire());
        } catch (const error& failure) {  // who comes late finds messages of all, and waits in the memory of its node
            if (half_done<Transport>::breaks(failure.code())) ranks.fail(failure.code(), failure.what());
            throw;
        }
    } else {
        if constexpr (requires { ranks.wire(); }) what.limits = cut_fingerprint(ranks.wire());
        agree(ranks, {what, what, ranks.rank(), -1}, where).throw_if_differs(what, ranks.rank());
    }
}

/// Runs a schedule over levels: a hierarchy level by level, with a reduce-scatter inside, an allreduce of each share across
/// and an all-gather inside. The ranks that `take` the result have it finished in `out`.
template <class Schedule, class Op, class Element, communicator Transport>
void fold_levels(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op, bool takes,
                 collective what) {
    using accumulator = accumulator_t<Op, Element>;
    constexpr bool in_place = std::same_as<accumulator, Element>;
    half_done{ranks}.during({to_string(what), 0}, [&] {
        accumulator* work = nullptr;
        if constexpr (in_place)
            if (takes) work = out;
        if (work == nullptr)
            work = reinterpret_cast<accumulator*>(ranks.scratch(count * sizeof(accumulator), scratch_for::levels));
        if (static_cast<const void*>(work) != in) kernel::convert(in, work, count);
        fold_in_place<Schedule>(ranks, work, count, unfinished<Op>{op}, what);
        if (takes && !(in_place && !finishes<Op, Element>)) kernel::finish(work, out, count, op, ranks.size());
    });
}

// ---- transports given for each level

/// A schedule of one level, on several: itself on all of them where it is made of halves.
template <class Schedule, class Accumulator, class Op, stacked_transport Transport>
    requires(!hierarchy<Schedule>)
void fold_in_place(Transport& ranks, Accumulator* data, std::size_t count, const Op& op, collective part_of) {
    using inner = std::conditional_t<has_halves<Schedule>, Schedule, direct>;
    fold_in_place<hierarchical<inner, Schedule>>(ranks, data, count, op, part_of);
}

template <class Schedule, class Checking, class Op, class Element, stacked_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    compare_levels<Checking>(ranks, describe<Op, Element, Schedule>(what, count, detail));
    with_schedule<Schedule>(count * sizeof(Element),
                            [&]<class Chosen>() { fold_levels<Chosen>(ranks, in, out, count, op, true, what); });
}

template <class Schedule, class Checking, class Op, class Element, stacked_transport Transport>
void reduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op, int root) {
    compare_levels<Checking>(ranks, describe<Op, Element, Schedule>(collective::reduce, count, root));
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        fold_levels<Chosen>(ranks, in, out, count, op, ranks.rank() == root, collective::reduce);
    });
}

template <class Schedule, class Checking, class Element, stacked_transport Transport>
void broadcast_over(Transport& ranks, Element* data, std::size_t count, int root) {
    compare_levels<Checking>(ranks, describe<no_op, Element, Schedule>(collective::broadcast, count, root));
    using node = std::remove_reference_t<decltype(ranks.node())>;
    using wire = std::remove_reference_t<decltype(ranks.wire())>;
    half_done{ranks}.during({"broadcast", 0}, [&] {
        const int members = ranks.node().size();
        if (ranks.node().rank() == root % members)
            broadcast_over<resolved<Schedule, collective::broadcast, no_op, wire>, unchecked>(ranks.wire(), data, count,
                                                                                              root / members);
        broadcast_over<resolved<Schedule, collective::broadcast, no_op, node>, unchecked>(ranks.node(), data, count,
                                                                                          root % members);
    });
}

template <class Schedule, class Checking, stacked_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    compare_levels<checked>(ranks, describe<no_op, std::byte, Schedule>(what, 0, 0));
}

}  // namespace ddl
