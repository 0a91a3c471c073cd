// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>

namespace ddl {

/// An all-gather that is set up once and run again and again.
///
/// A run puts `in` of rank `r`, `ddl::block(count, size, r).count` elements, in its place in `out` of every rank, which holds
/// `count`. `in` and `out` do not overlap, or `in` is this rank's own block of `out`. For the rest see `allreduce_plan`.
template <class Element, class Schedule, class Transport, class Checking = checked>
class all_gather_plan {
public:
    using checking = Checking;

    all_gather_plan(Transport& ranks, const Element* in, Element* out, std::size_t count)
        : ranks_{&ranks}, in_{in}, out_{out}, count_{count} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    /// Elements of the whole vector.
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid)
            return explain_call<collective::all_gather, schedule, no_op, Element>(*ranks_, in_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::all_gather, no_op, Transport>;
    static constexpr bool valid = compose<collective::all_gather, no_op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
};

template <class Element, class Schedule, class Transport, class Checking>
void all_gather_plan<Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) all_gather_over<schedule, Checking>(*ranks_, in_, out_, count_);
}

/// A plan for this rank's block `in` and all elements `out`. Local; a wrong length throws here, on this rank.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto all_gather_init(Transport& ranks, In&& in, Out&& out) {
    require_own_block<unchecked>(ranks, collective::all_gather, "in", in, out, "this rank's block of out");
    return all_gather_plan<element_for<In, Out>, Schedule, Transport, Checking>{
        ranks, input_for<In, Out>(ranks, in), output_for<In, Out>(ranks, out), count_for(out)};
}
/// A plan for `data`, in place: this rank's block of it is what this rank gives.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
auto all_gather_init(Transport& ranks, Data&& data) {
    return all_gather_plan<element_for<Data>, Schedule, Transport, Checking>{
        ranks, input_for<Data, Data>(ranks, data) + block(count_for(data), ranks_in(ranks), rank_in(ranks)).first,
        output_for<Data, Data>(ranks, data), count_for(data)};
}

/// Gathers `in` of all ranks, in rank order, in `out` of every rank. All ranks call it with equal `out` sizes and types; blocks.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
void all_gather(Transport&& ranks, In&& in, Out&& out) {
    require_own_block<Checking>(ranks, collective::all_gather, "in", in, out, "this rank's block of out");
    all_gather_init<Schedule, Checking>(ranks, in, out)();
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
void all_gather(Transport&& ranks, Data&& data) {
    all_gather_init<Schedule, Checking>(ranks, data)();
}

/// The same without blocking: a `ddl::request`. The buffers belong to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto all_gather_async(Transport& ranks, In&& in, Out&& out) {
    require_own_block<Checking>(ranks, collective::all_gather, "in", in, out, "this rank's block of out");
    return start(all_gather_init<Schedule, Checking>(ranks, std::forward<In>(in), std::forward<Out>(out)));
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
auto all_gather_async(Transport& ranks, Data&& data) {
    return start(all_gather_init<Schedule, Checking>(ranks, std::forward<Data>(data)));
}

}  // namespace ddl
