// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/backend.hpp>
#include <ddl/shim/binding.hpp>
#include <ddl/shim/options.hpp>

#include <array>
#include <cstdio>
#include <numeric>
#include <vector>

namespace ddl::shim {

/// What `-dump_iter` and `-rebind_iter` ask for: times of allreduces, compared between ranks every so many calls.
///
/// A rank is slow if it spends a lot less time in the calls than the others, who wait for it there. After three checks in a
/// row it is rebound: its threads may run on all processors of the node that the system leaves to it.
class performance {
public:
    /// What part of a vector a rank sends in each level; all 0 where the schedule has none.
    using parts = std::array<double, by_extents::levels>;

    performance(const options& given, const parts& sent) noexcept : given_{given}, sent_{sent} {}

    static bool wanted(const options& given) noexcept { return given.dump_iter > 0 || given.rebind_iter > 0; }
    static bool counts(collective what) noexcept {
        return what == collective::allreduce || what == collective::allreduce_n;
    }

    level_clock& clock() noexcept { return clock_; }

    /// Before each call, on all ranks. They go by the same periods, or no call is made: who compares times after another call than
    /// the others would take the next one's data for them.
    ddl_status begin(backend& world, const listener& heard) noexcept {
        if (agreed_) [[likely]]
            return DDL_OK;
        std::int64_t periods[] = {given_.dump_iter, -given_.dump_iter, given_.rebind_iter, -given_.rebind_iter};
        if (const ddl_status status = world.compare(periods, heard)) return status;
        agreed_ = periods[0] == -periods[1] && periods[2] == -periods[3];
        return guarded(heard, "timed allreduce", [&] {
            if (!agreed_)
                throw error(
                    errc::mismatch, "timed allreduce", world.rank(), -1,
                    "ranks were given other -dump_iter or -rebind_iter; pass the same in the options of every rank");
        });
    }

    /// After each call, on all ranks.
    ddl_status add(backend& world, double seconds, const task& done, const listener& heard) noexcept {
        ++calls_;
        seconds_ += seconds;
        const std::size_t count = std::accumulate(done.counts, done.counts + done.tensors, done.count);
        bytes_ += static_cast<double>(count) * static_cast<double>(ddl_size_element(done.element));
        const bool dump = given_.dump_iter > 0 && calls_ % given_.dump_iter == 0;
        const bool check = given_.rebind_iter > 0 && calls_ % given_.rebind_iter == 0;
        if (!dump && !check) return DDL_OK;
        const auto size = static_cast<std::size_t>(world.size());
        std::vector<std::int64_t> times;  // ns of each rank, and of each level
        const ddl_status collected = guarded(heard, "performance", [&] { times.resize(size + by_extents::levels); });
        if (collected != DDL_OK) return collected;
        for (int level = 0; level < by_extents::levels; ++level)
            times[size + static_cast<std::size_t>(level)] = static_cast<std::int64_t>(clock_.seconds(level) * 1e9);
        times[static_cast<std::size_t>(world.rank())] = static_cast<std::int64_t>(seconds_ * 1e9);
        if (const ddl_status status = world.compare(times, heard)) return status;
        std::size_t slowest = 0;
        std::size_t fastest = 0;
        for (std::size_t rank = 0; rank < size; ++rank) {
            if (times[rank] < times[slowest]) slowest = rank;  // nobody waits for the others less
            if (times[rank] > times[fastest]) fastest = rank;
        }
        if (dump && world.rank() == 0)
            print(static_cast<int>(slowest), static_cast<double>(times[fastest]) / 1e9, times.data() + size);
        if (check && slow_again(static_cast<int>(slowest), times[slowest] < times[fastest] / 2) &&
            world.rank() == suspect_)
            rebind();
        seconds_ = 0;
        bytes_ = 0;
        clock_ = {};
        return DDL_OK;
    }

private:
    void print(int slowest, double seconds, const std::int64_t* of_levels) const {
        std::fprintf(stderr, "[DDL] call %ld: slowest learner %d, end to end %.3f ms, %.3f GB/s, dims", calls_, slowest,
                     seconds * 1e3, seconds > 0 ? bytes_ / seconds / 1e9 : 0.0);
        for (int level = 0; level < by_extents::levels; ++level)
            std::fprintf(stderr, "%c%d", level == 0 ? ' ' : 'x', given_.extents[level]);
        std::fprintf(stderr, ", schedule %s", schedule_of_mode(given_, false));
        for (std::size_t level = 0; level < sent_.size(); ++level)
            if (sent_[level] > 0 && of_levels[level] > 0)  // not where the mode lacks the op or the element
                std::fprintf(stderr, ", dim %zu: %.3f ms, %.3f MB sent", level,
                             static_cast<double>(of_levels[level]) / 1e6, sent_[level] * bytes_ / 1e6);
        std::fputc('\n', stderr);
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
    parts sent_;
    level_clock clock_;
    bool agreed_ = false;
    long calls_ = 0;
    double seconds_ = 0;
    double bytes_ = 0;
    int suspect_ = -1;
    int times_in_a_row_ = 0;
};

}  // namespace ddl::shim
