// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>
#include <ddl/op/ops.hpp>

namespace ddl {

/// A reduction to one rank that is set up once and run again and again.
///
/// A run folds `count` elements of every rank into `out` of the root. Elsewhere `out` is neither read nor written, and may
/// be null. `in` and `out` are one buffer or do not overlap. For the rest see `allreduce_plan`.
template <class Op, class Element, class Schedule, class Transport, class Checking = checked>
class reduce_plan {
public:
    using checking = Checking;

    reduce_plan(Transport& ranks, const Element* in, Element* out, std::size_t count, Op op = Op{}, int root = 0)
        : ranks_{&ranks}, in_{in}, out_{out}, count_{count}, root_{root}, op_{op} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    /// Elements of the whole vector.
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid) return explain_call<collective::reduce, schedule, Op, Element>(*ranks_, in_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::reduce, Op, Transport>;
    static constexpr bool valid = compose<collective::reduce, Op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
    int root_;
    [[no_unique_address]] Op op_;
};

template <class Op, class Element, class Schedule, class Transport, class Checking>
void reduce_plan<Op, Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) reduce_over<schedule, Checking>(*ranks_, in_, out_, count_, op_, root_);
}

/// A plan for `in` and, on the root, `out` of equal length. Local; a wrong length or root throws here, on this rank.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
auto reduce_init(Transport& ranks, In&& in, Out&& out, Op op = {}, int root = 0) {
    require_root<unchecked>(ranks, collective::reduce, root);
    if (rank_in(ranks) == root) require_alike<unchecked>(ranks, collective::reduce, in, out);
    return reduce_plan<Op, element_for<In, Out>, Schedule, Transport, Checking>{
        ranks, input_for<In, Out>(ranks, in), output_for<In, Out>(ranks, out), count_for(in), op, root};
}
/// A plan for `data`: on the root it becomes the result, elsewhere it is only read.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
auto reduce_init(Transport& ranks, Data&& data, Op op = {}, int root = 0) {
    require_root<unchecked>(ranks, collective::reduce, root);
    return reduce_plan<Op, element_for<Data>, Schedule, Transport, Checking>{
        ranks, input_for<Data, Data>(ranks, data), output_for<Data, Data>(ranks, data), count_for(data), op, root};
}

/// Folds `in` of all ranks into `out` of `root`. All ranks call it with equal counts, types, ops, roots and schedules; blocks.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
void reduce(Transport&& ranks, In&& in, Out&& out, Op op = {}, int root = 0) {
    require_root<Checking>(ranks, collective::reduce, root);
    if (rank_in(ranks) == root) require_alike<Checking>(ranks, collective::reduce, in, out);
    reduce_init<Schedule, Checking>(ranks, in, out, op, root)();
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
void reduce(Transport&& ranks, Data&& data, Op op = {}, int root = 0) {
    require_root<Checking>(ranks, collective::reduce, root);
    reduce_init<Schedule, Checking>(ranks, data, op, root)();
}

/// The same without blocking: a `ddl::request`. The buffers belong to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
auto reduce_async(Transport& ranks, In&& in, Out&& out, Op op = {}, int root = 0) {
    require_root<Checking>(ranks, collective::reduce, root);
    if (rank_in(ranks) == root) require_alike<Checking>(ranks, collective::reduce, in, out);
    return start(reduce_init<Schedule, Checking>(ranks, std::forward<In>(in), std::forward<Out>(out), op, root));
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
auto reduce_async(Transport& ranks, Data&& data, Op op = {}, int root = 0) {
    require_root<Checking>(ranks, collective::reduce, root);
    return start(reduce_init<Schedule, Checking>(ranks, std::forward<Data>(data), op, root));
}

}  // namespace ddl
