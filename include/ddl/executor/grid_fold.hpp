// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/grid_share.hpp>
#include <ddl/op/op.hpp>

namespace ddl {

/// Ranks whose buffers receive something: `first` and those up to `end`.
struct grid_receivers {
    int first;
    int end;
};

/// How a thread of a grid folds what lies at one place of all ranks, in rank order: accumulated in `accumulator_t<Op, Element>`,
/// rounded once. It reads all ranks before it writes any, so inputs may be outputs.
template <class Op, class Element>
struct grid_fold {
    using accumulator = accumulator_t<Op, Element>;
    static constexpr std::size_t unit = kernel::packet_elements<Element>;

    /// Bytes of registers that the accumulated values of a packet take: a short one has one of its own.
    static constexpr std::size_t registers = unit * (sizeof(accumulator) < 4 ? 4 : sizeof(accumulator));

    /// Packets that a thread folds at a time: as many as keep loads in flight without filling the registers.
    static constexpr std::size_t together = registers <= 16 ? 4 : registers <= 32 ? 2 : 1;

    /// Folds packet `i` of `Count`, which lies at `in(rank)(i)`, into `out(receiver)(i)`.
    template <std::size_t Count, execution_space Space, class In, class Out>
    static constexpr void packets(Space& space, int ranks, grid_receivers receivers, const Op& op, const In& in,
                                  const Out& out) {
        using wide = kernel::values_of<accumulator, unit>;
        const auto fetch = [&](int rank, kernel::packet(&to)[Count]) {
            const auto from = in(rank);
            kernel::unrolled<Count>([&](auto i) { to[i] = space.load(from(i)); });
        };
        kernel::packet next[Count];
        wide sum[Count];
        fetch(0, next);
        kernel::unrolled<Count>([&](auto i) { space.template widen<Element>(next[i], sum[i]); });
        for (int rank = 1; rank < ranks; ++rank) {
            fetch(rank, next);
            kernel::unrolled<Count>([&](auto i) {
                wide operand;
                space.template widen<Element>(next[i], operand);
                kernel::unrolled<unit>([&](auto k) { sum[i].values[k] = op(sum[i].values[k], operand.values[k]); });
            });
        }
        kernel::unrolled<Count>([&](auto i) {
            using finished = std::remove_cvref_t<decltype(ddl::finish(op, sum[0].values[0], 1))>;
            kernel::values_of<finished, unit> last;
            kernel::unrolled<unit>([&](auto k) { last.values[k] = ddl::finish(op, sum[i].values[k], ranks); });
            next[i] = space.template narrow<Element>(last);
        });
        for (int rank = receivers.first; rank < receivers.end; ++rank) {
            const auto to = out(rank);
            kernel::unrolled<Count>([&](auto i) { space.store(to(i), next[i]); });
        }
    }

    /// Folds the element `*in(rank)` of all into `*out(receiver)`.
    template <class In, class Out>
    static constexpr void element(int ranks, grid_receivers receivers, const Op& op, const In& in, const Out& out) {
        accumulator sum = static_cast<accumulator>(*in(0));
        for (int rank = 1; rank < ranks; ++rank) sum = op(sum, static_cast<accumulator>(*in(rank)));
        const Element result = static_cast<Element>(ddl::finish(op, sum, ranks));
        for (int rank = receivers.first; rank < receivers.end; ++rank) *out(rank) = result;
    }
};

}  // namespace ddl
