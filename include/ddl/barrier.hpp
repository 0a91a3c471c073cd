// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>

namespace ddl {

/// Returns when all ranks have called it. All ranks call it; blocks.
///
/// Cost: one step over memory, and over messages among 3 to 8 ranks, of `p - 1` messages a rank; else `ceil(log2 p)` steps of one, and
/// 1 more if `p` is no power of two.
template <class Schedule = tuned, class Checking = checked, class Transport>
void barrier(Transport&& ranks) {
    using transport = std::remove_reference_t<Transport>;
    using schedule = schedule_of<Schedule, collective::barrier, no_op, transport>;
    if constexpr (compose<collective::barrier, no_op, std::byte, schedule, transport, Checking>())
        barrier_over<schedule, Checking>(ranks);
}

/// The same without blocking: a `ddl::request`.
template <class Schedule = tuned, class Checking = checked, class Transport>
auto barrier_async(Transport& ranks) {
    return start<Checking>(ranks, [&ranks] { barrier<Schedule, Checking>(ranks); });
}

}  // namespace ddl
