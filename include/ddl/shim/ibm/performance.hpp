// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>
#include <ddl/shim/ibm/binding.hpp>
#include <ddl/shim/options.hpp>

#include <cstdio>
#include <vector>

namespace ddl::shim {

/// What `-dump_iter` and `-rebind_iter` ask for: times of calls, compared between ranks every so many calls.
///
/// A rank is slow if it spends a lot less time in the calls than the others, who wait for it there. After three checks in a
/// row it is rebound: its threads may run on all processors of the node that the system leaves to it.
class performance {
public:
    explicit performance(const options& given) noexcept : given_{given} {}

    bool wanted() const noexcept { return given_.dump_iter > 0 || given_.rebind_iter > 0; }

    /// After each call, on all ranks.
    ddl_status add(ddl_communicator* world, double seconds, double bytes) {
        ++calls_;
        seconds_ += seconds;
        bytes_ += bytes;
        const bool dump = given_.dump_iter > 0 && calls_ % given_.dump_iter == 0;
        const bool check = given_.rebind_iter > 0 && calls_ % given_.rebind_iter == 0;
        if (!dump && !check) return DDL_OK;
        const auto size = static_cast<std::size_t>(ddl_get_size(world));
        std::vector<double> times(size);
        if (const ddl_status status = ddl_run_all_gather(world, &seconds_, times.data(), size, DDL_DOUBLE))
            return status;
        std::size_t slowest = 0;
        std::size_t fastest = 0;
        for (std::size_t rank = 0; rank < size; ++rank) {
            if (times[rank] < times[slowest]) slowest = rank;  // nobody waits for the others less
            if (times[rank] > times[fastest]) fastest = rank;
        }
        if (dump && ddl_get_rank(world) == 0) print(static_cast<int>(slowest), times[fastest]);
        if (check && slow_again(static_cast<int>(slowest), times[slowest] < times[fastest] / 2) &&
            ddl_get_rank(world) == suspect_)
            rebind();
        seconds_ = 0;
        bytes_ = 0;
        return DDL_OK;
    }

private:
    void print(int slowest, double seconds) const {
        std::fprintf(stderr, "[DDL] call %ld: slowest learner %d, end to end %.3f ms, %.3f GB/s, dims", calls_, slowest,
                     seconds * 1e3, seconds > 0 ? bytes_ / seconds / 1e9 : 0.0);
        for (int level = 0; level < by_extents::levels; ++level)
            std::fprintf(stderr, "%c%d", level == 0 ? ' ' : 'x', given_.extents[level]);
        std::fprintf(stderr, ", schedule %s\n", schedule_of_mode(given_, false));
    }
    /// Whether `suspect_` was slow in three checks in a row. All ranks say the same.
    bool slow_again(int rank, bool slow) {
        times_in_a_row_ = slow && rank == suspect_ ? times_in_a_row_ + 1 : slow ? 1 : 0;
        suspect_ = rank;
        if (times_in_a_row_ < 3) return false;
        times_in_a_row_ = 0;
        return true;
    }
    void rebind() const {
        const auto [before, after] = unbind();
        std::fprintf(stderr, "[WARN DDL-1-6] rank %d was slow in 3 checks in a row; ", suspect_);
        if (before < after)
            std::fprintf(stderr, "it was bound to %d processors, and may run on all %d of the node now\n", before,
                         after);
        else
            std::fprintf(stderr, "it may run on all %d processors of the node as before; see what else runs there\n",
                         after);
    }

    options given_;
    long calls_ = 0;
    double seconds_ = 0;
    double bytes_ = 0;
    int suspect_ = -1;
    int times_in_a_row_ = 0;
};

}  // namespace ddl::shim
