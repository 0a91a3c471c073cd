// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>
#include <ddl/op/ops.hpp>

namespace ddl {

/// A reduce-scatter that is set up once and run again and again.
///
/// A run folds block `r` of the `count` elements of every rank into `out` of rank `r`: `ddl::block(count, size, r).count`
/// elements. `in` and `out` do not overlap, or `out` is this rank's own block of `in`, of which then only that block holds
/// anything sensible afterwards. For the rest see `allreduce_plan`.
template <class Op, class Element, class Schedule, class Transport, class Checking = checked>
class reduce_scatter_plan {
public:
    using checking = Checking;

    reduce_scatter_plan(Transport& ranks, const Element* in, Element* out, std::size_t count, Op op = Op{})
        : ranks_{&ranks}, in_{in}, out_{out}, count_{count}, op_{op} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    /// Elements of the whole vector.
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid)
            return explain_call<collective::reduce_scatter, schedule, Op, Element>(*ranks_, in_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::reduce_scatter, Op, Transport>;
    static constexpr bool valid = compose<collective::reduce_scatter, Op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
    [[no_unique_address]] Op op_;
};

template <class Op, class Element, class Schedule, class Transport, class Checking>
void reduce_scatter_plan<Op, Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) reduce_scatter_over<schedule, Checking>(*ranks_, in_, out_, count_, op_);
}

/// A plan for all elements `in` and this rank's block `out`. Local; a wrong length throws here, on this rank.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
auto reduce_scatter_init(Transport& ranks, In&& in, Out&& out, Op op = {}) {
    require_own_block<unchecked>(ranks, collective::reduce_scatter, "out", out, in, "this rank's block of in");
    return reduce_scatter_plan<Op, element_for<In, Out>, Schedule, Transport, Checking>{
        ranks, input_for<In, Out>(ranks, in), output_for<In, Out>(ranks, out), count_for(in), op};
}
/// A plan for `data`, in place: this rank's block of it becomes the result.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
auto reduce_scatter_init(Transport& ranks, Data&& data, Op op = {}) {
    return reduce_scatter_plan<Op, element_for<Data>, Schedule, Transport, Checking>{
        ranks, input_for<Data, Data>(ranks, data),
        output_for<Data, Data>(ranks, data) + block(count_for(data), ranks_in(ranks), rank_in(ranks)).first,
        count_for(data), op};
}

/// Folds block `rank` of `in` of all ranks into `out`. All ranks call it with equal counts, types, ops and schedules; blocks.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
void reduce_scatter(Transport&& ranks, In&& in, Out&& out, Op op = {}) {
    require_own_block<Checking>(ranks, collective::reduce_scatter, "out", out, in, "this rank's block of in");
    reduce_scatter_init<Schedule, Checking>(ranks, in, out, op)();
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
void reduce_scatter(Transport&& ranks, Data&& data, Op op = {}) {
    reduce_scatter_init<Schedule, Checking>(ranks, data, op)();
}

/// The same without blocking: a `ddl::request`. The buffers belong to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
auto reduce_scatter_async(Transport& ranks, In&& in, Out&& out, Op op = {}) {
    require_own_block<Checking>(ranks, collective::reduce_scatter, "out", out, in, "this rank's block of in");
    return start(reduce_scatter_init<Schedule, Checking>(ranks, std::forward<In>(in), std::forward<Out>(out), op));
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
auto reduce_scatter_async(Transport& ranks, Data&& data, Op op = {}) {
    return start(reduce_scatter_init<Schedule, Checking>(ranks, std::forward<Data>(data), op));
}

}  // namespace ddl
