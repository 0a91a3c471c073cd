// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/text.hpp>
#include <ddl/transport/patience.hpp>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace ddl {

/// What the program that started this process says of it, in environment variables.
///
/// Rank and size: `RANK` and `WORLD_SIZE`, else those of Open MPI, of launchers that speak PMI (MPICH, Intel, Cray), or
/// of srun; without any, one rank. `DDL_JOB`: a name for all ranks of one run; without it, the one that Open MPI or srun has for it
/// where the rank is theirs, else "ddl". `DDL_TIMEOUT`: seconds (600).
struct launcher {
    std::string_view job = "ddl";
    int rank = 0;
    int size = 1;
    timeout limit{};

    /// Throws `errc::invalid_argument` with the name of a variable that makes no sense.
    static launcher from_environment() { return by(pairs); }
    /// What launchers of MPI say alone: where its ranks are wanted, `RANK` may be of somebody else.
    static launcher of_mpi() { return by(std::span{pairs}.subspan<1>()); }

private:
    using pair = const char* [2];
    static constexpr pair pairs[] = {{"RANK", "WORLD_SIZE"},
                                     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"PMI_RANK", "PMI_SIZE"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

    static launcher by(std::span<const pair> variables) {
        launcher result;
        for (const auto& [rank, size] : variables) {
            // Slurm gives the script of a batch job a rank, too: it is one of a step where srun has started it
            const bool is_none = value(rank) == nullptr || std::string_view{rank} == "SLURM_PROCID";
            if (is_none && value(size) == nullptr) continue;
            if (std::string_view{rank} != "RANK") result.job = name_of_run();
            result.size = number(size, 1, "a number of ranks, 1 or more");
            result.rank = number(rank, 0, "a rank, 0 or more");
            if (result.rank >= result.size)
                throw invalid("%s is %d and %s is %d; ranks count from 0", rank, result.rank, size, result.size);
            break;
        }
        if (const char* const job = value("DDL_JOB")) result.job = job;
        if (result.job.empty()) throw invalid("DDL_JOB is empty; give all ranks of one run the same name, or unset it");
        result.limit = timeout_from_environment();
        return result;
    }

    /// As the launcher has it, for another run may be on this host at the same time.
    static std::string_view name_of_run() {
        static const text name = [] {
            const char* const of_pmix = value("PMIX_NAMESPACE");
            const char* const of_slurm = value("SLURM_JOB_ID");
            const char* const step = value("SLURM_STEP_ID");
            if (of_pmix != nullptr && *of_pmix != '\0') return text{}.append("%.80s", of_pmix);
            if (of_slurm != nullptr && step != nullptr) return text{}.append("slurm-%.30s-%.40s", of_slurm, step);
            return text{}.append("ddl");
        }();
        return name;
    }

    static const char* value(const char* variable) noexcept {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): only a thread that sets variables could disturb it
        return std::getenv(variable);
    }

    static int number(const char* variable, int least, const char* meaning) {
        const char* const words = value(variable);
        if (words == nullptr) throw invalid("%s is not set, its companion is; set both, or none", variable);
        const char* const end = words + std::strlen(words);
        int result = 0;
        const auto [rest, failed] = std::from_chars(words, end, result);
        if (failed != std::errc{} || rest != end || result < least)
            throw invalid("%s is \"%.40s\"; it takes %s", variable, words, meaning);
        return result;
    }

    [[gnu::format(printf, 1, 2)]] static error invalid(const char* format, ...) {
        text line;
        std::va_list arguments;
        va_start(arguments, format);
        line.append(format, arguments);
        va_end(arguments);
        return error(errc::invalid_argument, "shared_memory", -1, -1, "%s", line.c_str());
    }
};

}  // namespace ddl
