// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>

namespace ddl {

/// A broadcast that is set up once and run again and again.
///
/// A run copies the `count` elements `data` of the root to `data` of every rank. For the rest see `allreduce_plan`.
template <class Element, class Schedule, class Transport, class Checking = checked>
class broadcast_plan {
public:
    using checking = Checking;

    broadcast_plan(Transport& ranks, Element* data, std::size_t count, int root = 0)
        : ranks_{&ranks}, data_{data}, count_{count}, root_{root} {}

    void operator()();

    /// The communicator that it is a call of.
    Transport& ranks() const noexcept { return *ranks_; }
    /// Elements of the whole vector.
    std::size_t count() const noexcept { return count_; }
    text explanation() const {
        if constexpr (valid)
            return explain_call<collective::broadcast, schedule, no_op, Element>(*ranks_, data_, count_);
        else return {};
    }

private:
    using schedule = schedule_of<Schedule, collective::broadcast, no_op, Transport>;
    static constexpr bool valid = compose<collective::broadcast, no_op, Element, schedule, Transport, Checking>();

    Transport* ranks_;
    Element* data_;
    std::size_t count_;
    int root_;
};

template <class Element, class Schedule, class Transport, class Checking>
void broadcast_plan<Element, Schedule, Transport, Checking>::operator()() {
    if constexpr (valid) broadcast_over<schedule, Checking>(*ranks_, data_, count_, root_);
}

/// A plan for `data`, which every rank holds in equal length. Local; a wrong root throws here, on this rank.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
auto broadcast_init(Transport& ranks, Data&& data, int root = 0) {
    require_root<unchecked>(ranks, collective::broadcast, root);
    return broadcast_plan<element_for<Data>, Schedule, Transport, Checking>{ranks, output_for<Data, Data>(ranks, data),
                                                                            count_for(data), root};
}

/// Copies `data` of `root` to `data` of every rank. All ranks call it with equal counts, types and roots; blocks.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
void broadcast(Transport&& ranks, Data&& data, int root = 0) {
    require_root<Checking>(ranks, collective::broadcast, root);
    broadcast_init<Schedule, Checking>(ranks, data, root)();
}

/// The same without blocking: a `ddl::request`. The buffer belongs to the call until it is done.
template <class Schedule = tuned, class Checking = checked, class Transport, class Data>
auto broadcast_async(Transport& ranks, Data&& data, int root = 0) {
    require_root<Checking>(ranks, collective::broadcast, root);
    return start(broadcast_init<Schedule, Checking>(ranks, std::forward<Data>(data), root));
}

}  // namespace ddl
