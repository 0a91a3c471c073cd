// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/block_layout.hpp>
#include <ddl/executor/direct_fold.hpp>
#include <ddl/executor/direct_move.hpp>
#include <ddl/executor/memory_walk.hpp>
#include <ddl/executor/proved_program.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/selected.hpp>

// The collectives over ranks that map each other's memory. `direct` is fused, any other schedule is walked as it stands. Each
// describes itself where the call begins, so that its description stays in registers: see `call`.
namespace ddl {

template <class Schedule, class Checking, class Op, class Element, memory_transport Transport>
void allreduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective what = collective::allreduce, int detail = 0) {
    const auto ours = [&] { return describe<Op, Element, Schedule>(what, count, detail); };
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            direct_fold(memory_call{ranks, ours(), Checking::compares}, in, out, count, op, [](int) { return true; });
        } else {
            const auto program = proved_rounds<collective::allreduce, Op, Chosen, Checking>(
                ranks, allreduce_program<Chosen>(ranks.size()));
            const partition cut{count, program.chunks()};
            walk<Op, Element>(
                ranks, ours(), Checking::compares, program, cut.longest(), op, [&](int c) { return cut.length(c); },
                [&](int c) { return in + cut.first(c); }, [&](int c) { return out + cut.first(c); });
        }
    });
}

template <class Schedule, class Checking, class Op, class Element, memory_transport Transport>
void reduce_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op, int root) {
    const auto ours = [&] { return describe<Op, Element, Schedule>(collective::reduce, count, root); };
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            direct_fold(memory_call{ranks, ours(), Checking::compares}, in, out, count, op,
                        [root](int rank) { return rank == root; });
        } else {
            const auto program = proved_rounds<collective::reduce, Op, Chosen, Checking>(
                ranks, reduce_program<Chosen>(ranks.size(), root), root);
            const partition cut{count, program.chunks()};
            walk<Op, Element>(
                ranks, ours(), Checking::compares, program, cut.longest(), op, [&](int c) { return cut.length(c); },
                [&](int c) { return in + cut.first(c); },
                [&](int c) { return ranks.rank() == root ? out + cut.first(c) : nullptr; });
        }
    });
}

/// `count` elements in, block `rank` of them out.
template <class Schedule, class Checking, class Op, class Element, memory_transport Transport>
void reduce_scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, const Op& op) {
    const auto ours = [&] { return describe<Op, Element, Schedule>(collective::reduce_scatter, count, 0); };
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            const partition blocks{count, ranks.size()};
            direct_fold_blocks(
                memory_call{ranks, ours(), Checking::compares},
                published_blocks{in, count, ranks.size(), [&](int, int part) { return blocks.first(part); },
                                 [&](int, int part) { return blocks.length(part); }, blocks.longest(), ranks.rank()},
                out, op);
        } else {
            const auto program = proved_rounds<collective::reduce_scatter, Op, Chosen, Checking>(
                ranks, reduce_scatter_program<Chosen>(ranks.size()));
            const block_layout layout{program, count};
            const std::size_t own = partition{count, ranks.size()}.first(ranks.rank());
            walk<Op, Element>(
                ranks, ours(), Checking::compares, program, layout.longest(), op,
                [&](int c) { return layout.length(c); }, [&](int c) { return in + layout.first(c); },
                [&](int c) { return layout.owner(c) == ranks.rank() ? out + (layout.first(c) - own) : nullptr; });
        }
    });
}

/// Stands for the op where data only moves: nothing is combined, nothing converted.
struct keep {
    template <class Element>
    using accumulator = Element;
    template <class Element>
    constexpr Element operator()(const Element& ours, const Element&) const noexcept {
        return ours;
    }
};

/// Block `rank` of `count` elements in, all of them out.
template <class Schedule, class Checking, class Element, memory_transport Transport>
void all_gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    const auto ours = [&] { return describe<no_op, Element, Schedule>(collective::all_gather, count, 0); };
    const partition blocks{count, ranks.size()};
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            direct_move(memory_call{ranks, ours(), Checking::compares},
                        published_blocks{in, blocks.length(ranks.rank()), 1, [](int, int) { return std::size_t{0}; },
                                         [&](int peer, int) { return blocks.length(peer); }, blocks.longest()},
                        count * static_cast<std::size_t>(ranks.size() + 1), [&](auto copy) {
                            for (int i = 0; i < ranks.size(); ++i) {  // the own block first: see direct_move
                                const int peer = (ranks.rank() + i) % ranks.size();
                                copy(peer, 0, out + blocks.first(peer));
                            }
                        });
        } else {
            const auto program = proved_rounds<collective::all_gather, no_op, Chosen, Checking>(
                ranks, all_gather_program<Chosen>(ranks.size()));
            const block_layout layout{program, count};
            const std::size_t own = blocks.first(ranks.rank());
            walk<keep, Element>(
                ranks, ours(), Checking::compares, program, layout.longest(), keep{},
                [&](int c) { return layout.length(c); },
                [&](int c) { return layout.owner(c) == ranks.rank() ? in + (layout.first(c) - own) : nullptr; },
                [&](int c) { return out + layout.first(c); });
        }
    });
}

template <class Schedule, class Checking, class Element, memory_transport Transport>
void broadcast_over(Transport& ranks, Element* data, std::size_t count, int root) {
    const auto ours = [&] { return describe<no_op, Element, Schedule>(collective::broadcast, count, root); };
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            published_blocks block{static_cast<const Element*>(data),
                                   count,
                                   1,
                                   [](int, int) { return std::size_t{0}; },
                                   [&](int peer, int) { return peer == root ? count : 0; },
                                   count};
            block.into = data;
            direct_move(memory_call{ranks, ours(), Checking::compares}, block,
                        count * static_cast<std::size_t>(ranks.size()), [&](auto copy) {
                            if (ranks.rank() != root) copy(root, 0, data);
                        });
        } else {
            const auto program = proved_rounds<collective::broadcast, no_op, Chosen, Checking>(
                ranks, broadcast_program<Chosen>(ranks.size(), root), root);
            const partition cut{count, program.chunks()};
            walk<keep, Element>(
                ranks, ours(), Checking::compares, program, cut.longest(), keep{}, [&](int c) { return cut.length(c); },
                [&](int c) { return ranks.rank() == root ? data + cut.first(c) : nullptr; },
                [&](int c) { return ranks.rank() == root ? nullptr : data + cut.first(c); });
        }
    });
}

/// Block `rank` of `count` elements in; all of them out at the root, where `out` must be.
template <class Schedule, class Checking, class Element, memory_transport Transport>
void gather_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    const auto ours = [&] { return describe<no_op, Element, Schedule>(collective::gather, count, root); };
    const partition blocks{count, ranks.size()};
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            direct_move(memory_call{ranks, ours(), Checking::compares},
                        published_blocks{in, blocks.length(ranks.rank()), 1, [](int, int) { return std::size_t{0}; },
                                         [&](int peer, int) { return peer == root ? 0 : blocks.length(peer); },
                                         blocks.longest()},
                        2 * count, [&](auto copy) {
                            for (int peer = 0; peer < ranks.size() && ranks.rank() == root; ++peer)
                                copy(peer, 0, out + blocks.first(peer));
                        });
            if (ranks.rank() == root) kernel::copy(in, out + blocks.first(root), blocks.length(root));
        } else {
            const auto program = proved_rounds<collective::gather, no_op, Chosen, Checking>(
                ranks, Chosen::gather(ranks.size(), root), root);
            walk<keep, Element>(
                ranks, ours(), Checking::compares, program, blocks.longest(), keep{},
                [&](int c) { return blocks.length(c); }, [&](int c) { return c == ranks.rank() ? in : nullptr; },
                [&](int c) { return ranks.rank() == root ? out + blocks.first(c) : nullptr; });
        }
    });
}

/// `count` elements in at the root, where `in` must be; block `rank` of them out.
template <class Schedule, class Checking, class Element, memory_transport Transport>
void scatter_over(Transport& ranks, const Element* in, Element* out, std::size_t count, int root) {
    const auto ours = [&] { return describe<no_op, Element, Schedule>(collective::scatter, count, root); };
    const partition blocks{count, ranks.size()};
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            direct_move(memory_call{ranks, ours(), Checking::compares},
                        published_blocks{in, ranks.rank() == root ? count : 0, ranks.size(),
                                         [&](int, int part) { return blocks.first(part); },
                                         [&](int peer, int part) { return peer == root ? blocks.length(part) : 0; },
                                         blocks.longest(), ranks.rank()},
                        2 * count, [&](auto copy) { copy(root, ranks.rank(), out); });
        } else {
            const auto program = proved_rounds<collective::scatter, no_op, Chosen, Checking>(
                ranks, Chosen::scatter(ranks.size(), root), root);
            walk<keep, Element>(
                ranks, ours(), Checking::compares, program, blocks.longest(), keep{},
                [&](int c) { return blocks.length(c); },
                [&](int c) { return ranks.rank() == root ? in + blocks.first(c) : nullptr; },
                [&](int c) { return c == ranks.rank() ? out : nullptr; });
        }
    });
}

/// `p` equal blocks of `count / p` elements in, block `r` for rank `r`; as many out, block `r` from rank `r`. `in` and `out` are
/// one buffer or do not overlap.
template <class Schedule, class Checking, class Element, memory_transport Transport>
void all_to_all_over(Transport& ranks, const Element* in, Element* out, std::size_t count) {
    const auto ours = [&] { return describe<no_op, Element, Schedule>(collective::all_to_all, count, 0); };
    const int size = ranks.size();
    const std::size_t each = count / static_cast<std::size_t>(size);
    const auto first = [each](int part) { return static_cast<std::size_t>(part) * each; };
    with_schedule<Schedule>(count * sizeof(Element), [&]<class Chosen>() {
        if constexpr (std::same_as<Chosen, direct>) {
            const auto place = [first](int, int part) { return first(part); };
            const auto length = [each](int, int) { return each; };
            published_blocks blocks{in, count, size, place, length, each, ranks.rank()};
            if (in == out) blocks.in_place = out;
            direct_move(memory_call{ranks, ours(), Checking::compares}, blocks,
                        2 * count * static_cast<std::size_t>(size), [&](auto copy) {
                            for (int i = 0; i < size; ++i) {
                                const int peer = (ranks.rank() + i) % size;
                                copy(peer, ranks.rank(), out + first(peer));
                            }
                        });
        } else {
            const auto program =
                proved_rounds<collective::all_to_all, no_op, Chosen, Checking>(ranks, Chosen::all_to_all(size));
            walk<keep, Element>(
                ranks, ours(), Checking::compares, program, each, keep{}, [&](int) { return each; },
                [&](int c) { return c / size == ranks.rank() ? in + first(c % size) : nullptr; },
                [&](int c) { return c % size == ranks.rank() ? out + first(c / size) : nullptr; });
        }
    });
}

/// Nobody leaves before everybody has come.
template <class Schedule, class Checking, memory_transport Transport>
void barrier_over(Transport& ranks, collective what = collective::barrier) {
    memory_call{ranks, describe<no_op, std::byte, Schedule>(what, 0, 0), Checking::compares}.enter();
}

}  // namespace ddl
