// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>

namespace ddl {

/// A scatter that is set up once and run again and again.
///
/// A run puts block `r` of the `count` elements `in` of the root in `out` of rank `r`, `ddl::block(count, size, r).count`
/// elements. Elsewhere `in` is not read, and may be null. `in` and `out` do not overlap, or the root's `out` is its own block
/// of `in`. For the rest see `allreduce_plan`.
template <class Element, class Schedule, class Transport, class Checking = checked>
class scatter_plan {
public:
    using checking = Checking;

    scatter_plan(Transport& ranks, const Element* in, Element* out, std::size_t count, int root = 0)
        : ranks_{&ranks}, in_{in}, out_{out}, count_{count}, root_{root} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    /// Elements of the whole vector.
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid) return explain_call<collective::scatter, schedule, no_op, Element>(*ranks_, in_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::scatter, no_op, Transport>;
    static constexpr bool valid = compose<collective::scatter, no_op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
    int root_;
};

template <class Element, class Schedule, class Transport, class Checking>
void scatter_plan<Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) scatter_over<schedule, Checking>(*ranks_, in_, out_, count_, root_);
}

/// A plan for equal blocks: `out` is one, and on the root `in` holds one for each rank; elsewhere `in` may be empty.
/// Local; a wrong length or root throws here, on this rank. For blocks that differ by one, make a `scatter_plan`.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto scatter_init(Transport& ranks, In&& in, Out&& out, int root = 0) {
    const std::size_t count =
        equal_blocks<unchecked>(ranks, collective::scatter, "in", out, in, "out for each rank", root);
    return scatter_plan<element_for<In, Out>, Schedule, Transport, Checking>{
        ranks, input_for<In, Out>(ranks, in), output_for<In, Out>(ranks, out), count, root};
}

/// Scatters `in` of `root`, in rank order, to `out` of all ranks. All ranks call it with equal counts, types and roots; blocks.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
void scatter(Transport&& ranks, In&& in, Out&& out, int root = 0) {
    equal_blocks<Checking>(ranks, collective::scatter, "in", out, in, "out for each rank", root);
    scatter_init<Schedule, Checking>(ranks, in, out, root)();
}

/// The same without blocking: a `ddl::request`. The buffers belong to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto scatter_async(Transport& ranks, In&& in, Out&& out, int root = 0) {
    equal_blocks<Checking>(ranks, collective::scatter, "in", out, in, "out for each rank", root);
    return start(scatter_init<Schedule, Checking>(ranks, std::forward<In>(in), std::forward<Out>(out), root));
}

}  // namespace ddl
