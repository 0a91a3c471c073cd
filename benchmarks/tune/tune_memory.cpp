// SPDX-License-Identifier: Apache-2.0
// Times the ways of the schedule `direct` over threads and over shared memory, each at every size, whatever the limits
// say. The driver beside this file starts it, and draws the limits from it. Its words are those of ../compare/options.hpp.
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/threads.hpp>

#include "limited.hpp"
#include "session.hpp"

namespace tune {
namespace {

constexpr std::size_t never = std::size_t{1} << 60;
constexpr ddl::direct_limits one_shot{.one_shot = never, .mapped = never, .mapped_move = never};
constexpr ddl::direct_limits mapped{.one_shot = 0, .mapped = 0, .mapped_move = 0};
template <std::size_t Segment>
constexpr ddl::direct_limits staged{.one_shot = 0, .mapped = never, .mapped_move = never, .segment = Segment};

constexpr bool are_those_of_main(bool amd, std::size_t from) {
    const ddl::direct_limits known{.one_shot = 4096, .mapped = from, .mapped_move = 8192, .segment = 131072};
    return known.for_processor(amd, false).fingerprint() ==
           ddl::direct_limits{}.for_processor(amd, false).fingerprint();
}
static_assert(are_those_of_main(false, 4097), "LIMITS of __main__.py beside this file no longer are those of ddl");
static_assert(are_those_of_main(true, 8192),
              "LIMITS of __main__.py beside this file no longer are those of ddl on AMD's processors");

/// `offered`: memory that peers can map, where it differs from this process's own.
template <ddl::direct_limits Limits, class Base>
compare::contender way(Base& world, const std::string& name, bool offered, bool for_segments = false) {
    const auto own = std::make_shared<limited<Base, Limits>>(world.split(0, world.rank()));
    compare::contender result;
    if (offered) result = compare::ours_mapped(*own, name);
    result.memory_kind = offered ? "mapped" : "";
    result.name = name;
    result.prepare = [own, for_segments](const compare::cell& asked) -> compare::collective_call {
        // long vectors are for the segments: the driver asks for none else there
        const bool is_long = asked.count * sizeof(compare::element) > std::size_t{1} << 17;
        if (is_long != for_segments && asked.collective == "allreduce") return {};
        const compare::collective_call call = call_of<ddl::direct>(*own, asked);
        if (!call || (for_segments && asked.collective != "allreduce")) return {};
        return [own, call](const compare::element* in, compare::element* out) { call(in, out); };
    };
    return result;
}

bool measure_on(ddl::threads& team, const compare::options& asked) {
    ddl::threads apart = team.split(0, team.rank());
    return measure_cells(asked, compare::meeting_of(apart),
                         {way<one_shot>(team, "one_shot", false), way<staged<1 << 16>>(team, "staged", false),
                          way<mapped>(team, "mapped", false)});
}

bool measure_on(ddl::shared_memory& node, const compare::options& asked) {
    ddl::shared_memory apart = node.split(0, node.rank());
    return measure_cells(
        asked, compare::meeting_of(apart),
        {way<one_shot>(node, "one_shot", false), way<staged<1 << 16>>(node, "staged", false),
         way<one_shot>(node, "one_shot of mapped", true), way<mapped>(node, "mapped", true),
         way<staged<1 << 14>>(node, "16384", false, true), way<staged<1 << 15>>(node, "32768", false, true),
         way<staged<1 << 16>>(node, "65536", false, true), way<staged<1 << 17>>(node, "131072", false, true)});
}

bool measure(const compare::options& asked) {
    const ddl::launcher launched = ddl::launcher::from_environment();
    if (asked.transports.front() == "threads") {
        std::atomic<bool> right = true;
        ddl::threads::run(launched.size, [&](ddl::threads& team) {
            bind_to_core(team.rank());
            if (!measure_on(team, asked)) right = false;
        });
        return right;
    }
    bind_to_core(launched.rank);
    ddl::shared_memory node;
    return measure_on(node, asked);
}

}  // namespace
}  // namespace tune

int main(int count, char** words) {
    try {
        return tune::measure(compare::parse({words + 1, words + count})) ? 0 : 1;
    } catch (const std::exception& failure) { std::fprintf(stderr, "tune_memory: %s\n", failure.what()); }
    return 2;
}
