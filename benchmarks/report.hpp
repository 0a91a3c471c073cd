// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

#include "json.hpp"
#include "machine.hpp"
#include "row.hpp"
#include "settings.hpp"

/// What one run found, as it is told: by rank 0.
class report {
public:
    report(const settings& asked, int ranks) : asked_{asked}, ranks_{ranks} {}

    /// The lines above the table. `explanations` are `ddl::explain` of the smallest and the largest size.
    void begin(const std::vector<std::string>& explanations) const {
        std::printf("# allreduce_bench, ddl %s: %s over %s, %d ranks, schedule %s\n", DDL_BENCHMARKS_LIBRARY_VERSION,
                    (asked_.element + " " + asked_.op).c_str(), asked_.transport.c_str(), ranks_,
                    asked_.schedule.c_str());
        for (const std::string& each : explanations) std::printf("# %s\n", each.c_str());
        std::printf("# buffers %s, results %s, %d calls to warm up\n", asked_.mapped ? "mapped" : "private",
                    asked_.check ? "checked" : "NOT checked", asked_.warmup);
        std::printf("# host %s, %ld processors, caches %s\n", host_name().c_str(), processors(), caches().c_str());
        std::printf("# compiler %s; steady_clock, which shows %.0f ns or more\n", compiler().c_str(),
                    1e9 * clock_cost());
        std::printf("#\n#%46s %9s", "", "barrier");
        if (asked_.out_of_place) std::printf("   %-56s", "out of place");
        if (asked_.in_place) std::printf("   %-56s", "in place");
        std::printf("\n#%11s %11s %7s %14s %9s", "bytes", "elements", "offset", "by", "median");
        for (int i = 0; i < asked_.in_place + asked_.out_of_place; ++i)
            std::printf("   %9s %9s %9s %8s %8s %8s", "min", "median", "max", "algbw", "busbw", "#wrong");
        std::printf("\n#%46s %9s", "", "us");
        for (int i = 0; i < asked_.in_place + asked_.out_of_place; ++i)
            std::printf("   %9s %9s %9s %8s %8s %8s", "us", "us", "us", "GB/s", "GB/s", "");
        std::printf("\n");
        std::fflush(stdout);
    }

    void add(const row& found) {
        rows_.push_back(found);
        std::printf(" %11zu %11zu %7zu %14s %9.2f", found.bytes, found.count, found.offset, found.by.c_str(),
                    found.barrier.median);
        for (const auto* each : {&found.out_of_place, &found.in_place}) {
            if (!*each) continue;
            const figures& told = **each;
            std::printf("   %9.2f %9.2f %9.2f %8.3f %8.3f", told.microseconds.minimum, told.microseconds.median,
                        told.microseconds.maximum, told.algorithm_bandwidth, told.bus_bandwidth);
            if (asked_.check) std::printf(" %8zu", told.wrong);
            else std::printf(" %8s", "n/a");
        }
        std::printf("\n");
        std::fflush(stdout);
    }

    /// Sums up, and writes the file if one is wanted.
    void end() const {
        std::size_t wrong = 0;
        for (const row& each : rows_) wrong += each.wrong();
        if (asked_.check) std::printf("# %zu wrong elements in all\n", wrong);
        std::fflush(stdout);
        if (!asked_.json.empty()) write();
    }

private:
    static json told(const spread& found) {
        return json_object{}
            .add("min_us", found.minimum)
            .add("median_us", found.median)
            .add("max_us", found.maximum)
            .value();
    }
    json told(const std::optional<figures>& found) const {
        if (!found) return json{nullptr};
        return json_object{}
            .add("calls", found->calls)
            .add("min_us", found->microseconds.minimum)
            .add("median_us", found->microseconds.median)
            .add("max_us", found->microseconds.maximum)
            .add("algbw_gb_s", found->algorithm_bandwidth)
            .add("busbw_gb_s", found->bus_bandwidth)
            .add("wrong", asked_.check ? json{found->wrong} : json{nullptr})
            .value();
    }
    json told(const row& found) const {
        return json_object{}
            .add("bytes", found.bytes)
            .add("elements", found.count)
            .add("offset", found.offset)
            .add("by", found.by)
            .add("explanation", found.explanation)
            .add("barrier", told(found.barrier))
            .add("out_of_place", told(found.out_of_place))
            .add("in_place", told(found.in_place))
            .value();
    }
    json told(const settings& asked) const {
        return json_object{}
            .add("transport", asked.transport)
            .add("ranks", ranks_)
            .add("schedule", asked.schedule)
            .add("element", asked.element)
            .add("op", asked.op)
            .add("min_bytes", asked.min_bytes)
            .add("max_bytes", asked.max_bytes)
            .add("factor", asked.factor)
            .add("warmup", asked.warmup)
            .add("iterations", asked.seconds > 0 ? json{nullptr} : json{asked.iterations})
            .add("seconds", asked.seconds > 0 ? json{asked.seconds} : json{nullptr})
            .add("buffers", std::string_view{asked.mapped ? "mapped" : "private"})
            .add("check", asked.check)
            .add("mpi", asked.against_mpi)
            .value();
    }
    void write() const {
        json_array rows;
        for (const row& each : rows_) rows.add(told(each));
        const json machine = json_object{}
                                 .add("host", host_name())
                                 .add("processors", processors())
                                 .add("caches", caches())
                                 .add("compiler", compiler())
                                 .add("clock", std::string_view{"steady_clock"})
                                 .add("clock_cost_ns", 1e9 * clock_cost())
                                 .value();
        const json whole = json_object{}
                               .add("program", std::string_view{"allreduce_bench"})
                               .add("library", std::string_view{"ddl " DDL_BENCHMARKS_LIBRARY_VERSION})
                               .add("settings", told(asked_))
                               .add("machine", machine)
                               .add("rows", rows.value())
                               .value();
        std::FILE* const file = std::fopen(asked_.json.c_str(), "w");
        const bool written = file != nullptr && std::fprintf(file, "%s\n", whole.text.c_str()) > 0;
        const bool closed = file != nullptr && std::fclose(file) == 0;
        if (!written || !closed) throw usage_error("--json: cannot write '" + asked_.json + "'");
    }

    const settings& asked_;
    int ranks_;
    std::vector<row> rows_;
};
