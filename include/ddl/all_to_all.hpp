// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>

namespace ddl {

/// An all-to-all that is set up once and run again and again.
///
/// A run puts block `d` of `in` of rank `s` in block `s` of `out` of rank `d`: `count / size` elements each. `in` and `out` are
/// one buffer or do not overlap. For the rest see `allreduce_plan`.
template <class Element, class Schedule, class Transport, class Checking = checked>
class all_to_all_plan {
public:
    using checking = Checking;

    all_to_all_plan(Transport& ranks, const Element* in, Element* out, std::size_t count)
        : ranks_{&ranks}, in_{in}, out_{out}, count_{count} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    /// Elements of the whole vector.
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid)
            return explain_call<collective::all_to_all, schedule, no_op, Element>(*ranks_, in_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::all_to_all, no_op, Transport>;
    static constexpr bool valid = compose<collective::all_to_all, no_op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
};

template <class Element, class Schedule, class Transport, class Checking>
void all_to_all_plan<Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) all_to_all_over<schedule, Checking>(*ranks_, in_, out_, count_);
}

/// `count` must be a multiple of the number of ranks.
template <class Checking, class Transport>
void require_blocks(Transport& ranks, std::size_t count) {
    if (count % static_cast<std::size_t>(ranks_in(ranks)) == 0) return;
    refuse<Checking>(
        ranks, error(errc::invalid_argument, to_string(collective::all_to_all), rank_in(ranks), -1,
                     "in holds %zu elements, one block of equal length for each rank; pass a multiple of %d", count,
                     ranks_in(ranks)));
}

/// A plan for `in` and `out` of equal length, a multiple of the number of ranks. Local; a wrong length throws here.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto all_to_all_init(Transport& ranks, In&& in, Out&& out) {
    require_alike<unchecked>(ranks, collective::all_to_all, in, out);
    require_blocks<unchecked>(ranks, count_for(in));
    return all_to_all_plan<element_for<In, Out>, Schedule, Transport, Checking>{
        ranks, input_for<In, Out>(ranks, in), output_for<In, Out>(ranks, out), count_for(in)};
}
/// A plan for `data`, in place.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
auto all_to_all_init(Transport& ranks, Data&& data) {
    require_blocks<unchecked>(ranks, count_for(data));
    return all_to_all_plan<element_for<Data>, Schedule, Transport, Checking>{
        ranks, input_for<Data, Data>(ranks, data), output_for<Data, Data>(ranks, data), count_for(data)};
}

/// Sends block `d` of `in` to rank `d`, and receives block `s` of `out` from rank `s`. All ranks call it with equal counts and
/// types; blocks. Among up to 46340 ranks, whose pairs an `int` can number.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
void all_to_all(Transport&& ranks, In&& in, Out&& out) {
    require_alike<Checking>(ranks, collective::all_to_all, in, out);
    require_blocks<Checking>(ranks, count_for(in));
    all_to_all_init<Schedule, Checking>(ranks, in, out)();
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
void all_to_all(Transport&& ranks, Data&& data) {
    require_blocks<Checking>(ranks, count_for(data));
    all_to_all_init<Schedule, Checking>(ranks, data)();
}

/// The same without blocking: a `ddl::request`. The buffers belong to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class In, class Out>
auto all_to_all_async(Transport& ranks, In&& in, Out&& out) {
    require_alike<Checking>(ranks, collective::all_to_all, in, out);
    require_blocks<Checking>(ranks, count_for(in));
    return start(all_to_all_init<Schedule, Checking>(ranks, std::forward<In>(in), std::forward<Out>(out)));
}
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
auto all_to_all_async(Transport& ranks, Data&& data) {
    require_blocks<Checking>(ranks, count_for(data));
    return start(all_to_all_init<Schedule, Checking>(ranks, std::forward<Data>(data)));
}

}  // namespace ddl
