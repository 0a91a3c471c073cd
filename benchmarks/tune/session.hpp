// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <exception>

#include "../compare/harness.hpp"
#include "../compare/options.hpp"
#include "../compare/ours.hpp"
#include "../compare/sample_file.hpp"

namespace tune {

/// The cell's call by `Schedule`: an allreduce or a broadcast in place, or an all-gather.
template <class Schedule, class Checking = ddl::checked, class Transport>
compare::collective_call call_of(Transport& world, const compare::cell& asked) {
    using compare::element;
    const std::size_t count = asked.count;
    if (asked.collective == "allreduce")
        return [&world, count](const element*, element* out) {
            ddl::allreduce<Schedule, Checking>(world, std::span<element>{out, count}, compare::op{});
        };
    if constexpr (ddl::offers<Schedule, ddl::collective::all_gather>)
        if (asked.collective == "all_gather") {
            const std::size_t block = ddl::block(count, world.size(), world.rank()).count;
            return [&world, block, count](const element* in, element* out) {
                ddl::all_gather<Schedule, Checking>(world, std::span<const element>{in, block},
                                                    std::span<element>{out, count});
            };
        }
    if constexpr (ddl::offers<Schedule, ddl::collective::broadcast>)
        if (asked.collective == "broadcast")
            return [&world, count](const element*, element* out) {
                ddl::broadcast<Schedule, Checking>(world, std::span<element>{out, count});
            };
    return {};
}

/// Takes the samples of all cells and writes them down as they are. True if all results were right.
inline bool measure_cells(const compare::options& asked, const compare::meeting& ranks,
                          const std::vector<compare::contender>& contenders) {
    compare::sample_file file{ranks.rank == 0 ? asked.out : "", asked.transports.front(), ranks.size};
    bool right = true;
    for (const compare::cell& each : asked.cells) {
        compare::turns taken{ranks, each, contenders, asked.allowed};
        const std::vector<compare::samples> found = taken.run();
        file.add(each, taken.calls_a_sample(), found);
        for (const compare::samples& one : found) right = right && one.wrong == 0;
    }
    return right;
}

}  // namespace tune
