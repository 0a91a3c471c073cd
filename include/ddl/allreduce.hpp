// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/fusion.hpp>
#include <ddl/executor/plan.hpp>
#include <ddl/op/ops.hpp>

#include <span>
#include <vector>

namespace ddl {

/// An allreduce that is set up once and run again and again: `plan()`.
///
/// A run folds `count` elements of every rank into `out` of every rank. `in` and `out` are one buffer or do not overlap;
/// they belong to the caller and outlive the plan, as the transport does. All ranks run equal plans in equal order; a run
/// blocks. Results are the same bits on every rank and in every run of a plan. Values are accumulated in
/// `accumulator_t<Op, Element>` and rounded once. A run that throws leaves `in` as it was, unless it is `out`.
///
/// Cost in steps and bytes: see `Schedule`. Errors: `ddl::error`, see docs/errors.md. This is the class to instantiate:
/// `template class ddl::allreduce_plan<ddl::sum, float, ddl::ring, ddl::mpi>;` A run is no inline function, so that sources which
/// see it declared `extern` do not compile it.
template <class Op, class Element, class Schedule, class Transport, class Checking = checked>
class allreduce_plan {
public:
    using checking = Checking;

    allreduce_plan(Transport& ranks, const Element* in, Element* out, std::size_t count, Op op = Op{})
        : ranks_{&ranks}, in_{in}, out_{out}, count_{count}, op_{op} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid) return explain_call<collective::allreduce, schedule, Op, Element>(*ranks_, in_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::allreduce, Op, Transport>;
    static constexpr bool valid = compose<collective::allreduce, Op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
    [[no_unique_address]] Op op_;
};

template <class Op, class Element, class Schedule, class Transport, class Checking>
void allreduce_plan<Op, Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) allreduce_over<schedule, Checking>(*ranks_, in_, out_, count_, op_);
}

/// A plan for `in` and `out` of equal length. Local; a wrong length throws here, on this rank.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
auto allreduce_init(Transport& ranks, In&& in, Out&& out, Op op = {}) {
    require_alike<unchecked>(ranks, collective::allreduce, in, out);
    return allreduce_plan<Op, element_for<In, Out>, Schedule, Transport, Checking>{
        ranks, input_for<In, Out>(ranks, in), output_for<In, Out>(ranks, out), count_for(in), op};
}
/// A plan for `data`, in place.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
auto allreduce_init(Transport& ranks, Data&& data, Op op = {}) {
    return allreduce_plan<Op, element_for<Data>, Schedule, Transport, Checking>{
        ranks, input_for<Data, Data>(ranks, data), output_for<Data, Data>(ranks, data), count_for(data), op};
}

/// Folds `in` of all ranks into `out` of every rank. All ranks call it with equal counts, types, ops and schedules; blocks.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
void allreduce(Transport&& ranks, In&& in, Out&& out, Op op = {}) {
    require_alike<Checking>(ranks, collective::allreduce, in, out);
    allreduce_init<Schedule, Checking>(ranks, in, out, op)();
}
/// Folds `data` of all ranks into `data` of every rank.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
void allreduce(Transport&& ranks, Data&& data, Op op = {}) {
    allreduce_init<Schedule, Checking>(ranks, data, op)();
}

/// The same without blocking: a `ddl::request`. The buffers belong to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out, class Op = sum>
    requires(!no_range<std::remove_reference_t<Out>>)
auto allreduce_async(Transport& ranks, In&& in, Out&& out, Op op = {}) {
    require_alike<Checking>(ranks, collective::allreduce, in, out);
    return start(allreduce_init<Schedule, Checking>(ranks, std::forward<In>(in), std::forward<Out>(out), op));
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data, class Op = sum>
    requires no_range<Op>
auto allreduce_async(Transport& ranks, Data&& data, Op op = {}) {
    return start(allreduce_init<Schedule, Checking>(ranks, std::forward<Data>(data), op));
}

/// Room to pack `count` elements, which is needed before a call can be announced. Without it this rank refuses the call.
template <class Checking, class Element, class Transport>
Element* room_or_refuse(Transport& ranks, std::size_t count) {
    ranks.queue().drain();  // pending calls may still use it, or write what is to be copied to it
    try {
        return reinterpret_cast<Element*>(ranks.scratch(count * sizeof(Element), scratch_for::fusion));
    } catch (const std::exception& failure) {
        refuse<Checking>(ranks, error(errc::out_of_memory, to_string(collective::allreduce_n), rank_in(ranks), -1,
                                      "no %zu bytes could be had for a copy of the data: %s", count * sizeof(Element),
                                      failure.what()));
    }
}

/// Many tensors in one exchange, in place: `tensors` is a range of contiguous ranges of one element type, of equal sizes in
/// equal order on all ranks. Long ones are reduced where they are, short ones packed into a buffer that the communicator
/// keeps, reduced, and unpacked; the caller keeps its tensors where they are. They must not overlap, for which nobody looks: one
/// that a program uses twice is listed once. All ranks call it; blocks.
///
/// Cost: an allreduce of each long tensor and of each full buffer (`fusion_limits`), and a copy in and out of the short ones.
/// On GPUs no copy, and a launch for some hundreds of tensors: as many as `grid_limits::table` lists.
template <class Schedule = tuned, class Checking = checked, class Transport, class Tensors, class Op = sum>
void allreduce_n(Transport&& ranks, Tensors&& tensors, Op op = {}) {
    using transport = std::remove_reference_t<Transport>;
    using range = std::remove_reference_t<Tensors>;
    using schedule = schedule_of<Schedule, collective::allreduce, Op, transport>;
    if constexpr (tensors_fit<transport, range>()) {
        using element_type = element_of<std::remove_reference_t<tensor_in<range>>>;
        if constexpr (compose<collective::allreduce, Op, element_type, schedule, transport, Checking>()) {
            const fusion<element_type, range> vectors{tensors, fusion_limits_of<transport>};
            if constexpr (grid_transport<transport>) {
                allreduce_n_over<schedule, Checking>(ranks, tensors, vectors.sizes(), op);
            } else {
                element_type* const packed = room_or_refuse<Checking, element_type>(ranks, vectors.room());
                vectors.each_vector(packed, [&](element_type* data, std::size_t count) {
                    allreduce_over<schedule, Checking>(ranks, static_cast<const element_type*>(data), data, count, op,
                                                       collective::allreduce_n, static_cast<int>(vectors.sizes()));
                });
            }
        }
    }
}

/// Where the elements of the tensors in a range lie.
template <class Tensors>
auto spans_of(Tensors& tensors) {
    std::vector<std::span<element_of<std::remove_reference_t<tensor_in<Tensors>>>>> spans;
    for (auto&& each : tensors) spans.emplace_back(data_of(each), size_of(each));
    return spans;
}

/// The same without blocking. `tensors` is gone through before it returns; the elements stay where they are and belong to the call
/// until it is done. So a vector of spans may be a temporary, and one of vectors may not.
template <class Schedule = tuned, class Checking = checked, class Transport, class Tensors, class Op = sum>
auto allreduce_n_async(Transport& ranks, Tensors&& tensors, Op op = {}) {
    if constexpr (!tensors_fit<Transport, std::remove_reference_t<Tensors>>()) {
        return request{};
    } else {
        static_cast<void>(outlives_its_call<tensor_for_later<Tensors>>{});
        auto spans = prepared<Checking>(ranks, [&] { return spans_of(tensors); });
        return start<Checking>(ranks, [&ranks, held = std::move(spans), op]() mutable {
            allreduce_n<Schedule, Checking>(ranks, held, op);
        });
    }
}

}  // namespace ddl
