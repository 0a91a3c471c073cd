// SPDX-License-Identifier: Apache-2.0
// shim_overhead [TURNS [CALLS]]: what a small allreduce costs through ddl.h and IBM's face beyond the C++ template it
// stands on. Each turn times CALLS calls (2000) of each face, one face after the other; the figures are medians over the
// TURNS turns (200) of the time of one call, and of the difference in a turn. Run by one rank it tells of the calls alone;
// by several, under examples/launch, of what is left of it beside an exchange. Before that a sum by each face is checked.
#include <ddl/allreduce.hpp>
#include <ddl/shim/ddl.h>
#include <ddl/shim/ddl.hpp>
#include <ddl/transport/shared_memory.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t count = 8;
float values[count];

struct face {
    const char* name;
    bool (*call)();
    std::vector<double> nanoseconds;
};

ddl::allreduce_plan<ddl::sum, float, ddl::tuned, ddl::shared_memory>* plan = nullptr;
ddl_communicator* world = nullptr;
ddl_plan* c_plan = nullptr;

double median(std::vector<double> of) {
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    return of[of.size() / 2];
}

/// `otherwise` where nothing is said, 0 where it is no number above 0.
int number(int arguments, char** words, int index, int otherwise) {
    if (arguments <= index) return otherwise;
    const char* const end = words[index] + std::strlen(words[index]);
    int given = 0;
    const auto [rest, failed] = std::from_chars(words[index], end, given);
    return failed == std::errc{} && rest == end && given > 0 ? given : 0;
}

/// Whether a call adds what the ranks bring.
bool adds(const face& tried, int rank, int size) {
    std::fill(values, values + count, static_cast<float>(rank + 1));
    const bool well = tried.call();
    const float sum = static_cast<float>(size) * static_cast<float>(size + 1) / 2;
    const bool right = std::all_of(values, values + count, [&](float value) { return value == sum; });
    if (!well || !right) std::fprintf(stderr, "%s: %s\n", tried.name, well ? "a wrong sum" : ddl_last_error());
    return well && right;
}

}  // namespace

int main(int arguments, char** words) {
    const int turns = number(arguments, words, 1, 200);
    const int calls = number(arguments, words, 2, 2000);
    if (turns == 0 || calls == 0 || arguments > 3) {
        std::fprintf(stderr, "usage: shim_overhead [TURNS [CALLS]], numbers above 0\n");
        return 2;
    }
    const ddl::launcher launched = ddl::launcher::from_environment();
    ddl::shared_memory node{std::string{launched.job} + ".template", launched.rank, launched.size};
    ddl::allreduce_plan<ddl::sum, float, ddl::tuned, ddl::shared_memory> made{node, values, values, count};
    plan = &made;
    if (ddl_init("") != DDL_SUCCESS || ddl_open_environment(&world) != DDL_OK ||
        ddl_plan_allreduce(world, values, values, count, DDL_FLOAT, DDL_SUM, &c_plan) != DDL_OK) {
        std::fprintf(stderr, "%s\n", ddl_last_error());
        return 1;
    }
    face faces[] = {
        {"C++ template", [] { return (*plan)(), true; }, {}},
        {"ddl_run_allreduce",
         [] { return ddl_run_allreduce(world, values, values, count, DDL_FLOAT, DDL_SUM) == DDL_OK; },
         {}},
        {"ddl_run_plan", [] { return ddl_run_plan(c_plan) == DDL_OK; }, {}},
        {"ddl_allreduce (IBM)", [] { return ddl_allreduce(values, count) == DDL_SUCCESS; }, {}},
    };
    for (const face& each : faces)
        if (!adds(each, node.rank(), node.size())) return 1;
    std::fill(values, values + count, 0.0F);   // sums of sums would overflow
    for (int turn = -1; turn < turns; ++turn)  // the first warms up
        for (face& each : faces) {
            const double begin = ddl::now();
            bool well = true;
            for (int call = 0; call < calls; ++call) well &= each.call();
            const double seconds = ddl::now() - begin;
            if (!well) {
                std::fprintf(stderr, "%s: %s\n", each.name, ddl_last_error());
                return 1;
            }
            if (turn >= 0) each.nanoseconds.push_back(seconds * 1e9 / calls);
        }
    if (node.rank() == 0)
        for (const face& each : faces) {
            std::vector<double> beyond(each.nanoseconds.size());
            for (std::size_t turn = 0; turn < beyond.size(); ++turn)
                beyond[turn] = each.nanoseconds[turn] - faces[0].nanoseconds[turn];
            std::printf("%-20s %8.1f ns, %+7.1f ns beyond the template\n", each.name, median(each.nanoseconds),
                        median(beyond));
        }
    ddl_free_plan(c_plan);
    ddl_close(world);
    return ddl_finalize();
}
