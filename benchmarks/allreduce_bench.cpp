// SPDX-License-Identifier: Apache-2.0
// How long does an allreduce take, for each size, and how much of the machine's bandwidth does it use?
#include <ddl/transport/launcher.hpp>

#include <cstdio>
#include <exception>

#include "options.hpp"
#include "ranks/ranks.hpp"

namespace {
constexpr const char* usage =
    "usage: allreduce_bench [--OPTION VALUE]...\n"
    "Times the allreduce of ddl call by call and checks each result. Ends with 0, with 1 if a result was wrong, or with 2.\n"
    "Its ranks: threads; processes that it starts, or that a launcher started (shared_memory); those of MPI (mpi, cluster).\n"
    "Options, and in brackets what holds without them:\n";

/// Of many ranks that were started with the same wrong words, one says so.
bool speaks() {
    try {
        return ddl::launcher::from_environment().rank == 0;
    } catch (const ddl::error&) { return true; }
}

ending measure(const settings& asked) {
    if (asked.transport == "threads") return measure_on_threads(asked);
    if (asked.transport == "shared_memory") return measure_on_shared_memory(asked);
    if (asked.transport == "mpi") return measure_on_mpi(asked);
    return measure_on_cluster(asked);
}
}  // namespace

ending or_refused(const std::function<ending()>& body) {
    try {
        return body();
    } catch (const usage_error& failure) {
        if (speaks()) std::fprintf(stderr, "allreduce_bench: %s\n", failure.what());
    } catch (const std::exception& failure) { std::fprintf(stderr, "allreduce_bench: %s\n", failure.what()); }
    return ending::refused;
}

int main(int count, char** words) {
    const std::vector<std::string> given(words + 1, words + count);
    if (given == std::vector<std::string>{"--help"}) {
        std::printf("%s%s", usage, options_explained().c_str());
        return 0;
    }
    return static_cast<int>(or_refused([&] { return measure(parse(given)); }));
}
