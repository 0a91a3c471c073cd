// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>

namespace ddl {

/// A gather that is set up once and run again and again.
///
/// A run puts `in` of rank `r`, `ddl::block(count, size, r).count` elements, in its place in `out` of the root, which holds
/// `count`. Elsewhere `out` is neither read nor written, and may be null. `in` and `out` do not overlap, or the root's `in` is
/// its own block of `out`. For the rest see `allreduce_plan`.
template <class Element, class Schedule, class Transport, class Checking = checked>
class gather_plan {
public:
    using checking = Checking;

    gather_plan(Transport& ranks, const Element* in, Element* out, std::size_t count, int root = 0)
        : ranks_{&ranks}, in_{in}, out_{out}, count_{count}, root_{root} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    /// Elements of the whole vector.
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid) return explain_call<collective::gather, schedule, no_op, Element>(*ranks_, in_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::gather, no_op, Transport>;
    static constexpr bool valid = compose<collective::gather, no_op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
    int root_;
};

template <class Element, class Schedule, class Transport, class Checking>
void gather_plan<Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) gather_over<schedule, Checking>(*ranks_, in_, out_, count_, root_);
}

/// A plan for equal blocks: `in` is one, and on the root `out` holds one for each rank; elsewhere `out` may be empty.
/// Local; a wrong length or root throws here, on this rank. For blocks that differ by one, make a `gather_plan`.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto gather_init(Transport& ranks, In&& in, Out&& out, int root = 0) {
    const std::size_t count =
        equal_blocks<unchecked>(ranks, collective::gather, "out", in, out, "in for each rank", root);
    return gather_plan<element_for<In, Out>, Schedule, Transport, Checking>{
        ranks, input_for<In, Out>(ranks, in), output_for<In, Out>(ranks, out), count, root};
}

/// Gathers `in` of all ranks, in rank order, in `out` of `root`. All ranks call it with equal counts, types and roots; blocks.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
void gather(Transport&& ranks, In&& in, Out&& out, int root = 0) {
    equal_blocks<Checking>(ranks, collective::gather, "out", in, out, "in for each rank", root);
    gather_init<Schedule, Checking>(ranks, in, out, root)();
}

/// The same without blocking: a `ddl::request`. The buffers belong to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto gather_async(Transport& ranks, In&& in, Out&& out, int root = 0) {
    equal_blocks<Checking>(ranks, collective::gather, "out", in, out, "in for each rank", root);
    return start(gather_init<Schedule, Checking>(ranks, std::forward<In>(in), std::forward<Out>(out), root));
}

}  // namespace ddl
