// SPDX-License-Identifier: Apache-2.0
// One rank of a comparison: takes the samples, and leaves them as they are. The driver beside this file starts the
// ranks and judges. Its words are those of `options.hpp`.
#include <ddl/transport/shared_memory.hpp>

#include <cstdio>
#include <exception>
#include <optional>

#include "floor.hpp"
#include "harness.hpp"
#include "options.hpp"
#include "ours.hpp"
#include "peer.hpp"
#include "sample_file.hpp"

namespace compare {
namespace {

/// The processes of one host; there is none where ranks are on several.
struct local_ranks {
    std::optional<ddl::shared_memory> node;   // for the contenders
    std::optional<ddl::shared_memory> apart;  // for the harness
};

std::vector<contender> contenders_of(const options& asked, local_ranks& local, const peer& theirs) {
    std::vector<contender> all = theirs.contenders();
    for (const std::string& transport : asked.transports) {
        if (transport == "shared_memory" && !local.node)
            throw std::invalid_argument("shared memory ends where the host does; pass --transport cluster or mpi");
        if (transport == "shared_memory") {
            all.push_back(ours_private(*local.node, "ddl"));
            all.push_back(ours_mapped(*local.node, "ddl"));
            all.push_back(ours_one_by_one(*local.node, "ddl"));
        } else {
            for (contender& each : ours_over_mpi(transport)) all.push_back(std::move(each));
        }
    }
    return all;
}

/// True if all results were right.
bool compare_cells(const options& asked, const peer& theirs) {
    local_ranks local;
    if (!asked.several_hosts) {
        local.node.emplace();
        local.apart.emplace(local.node->split(0, local.node->rank()));
    }
    const meeting ranks = local.apart ? meeting_of(*local.apart) : meeting_over_mpi();
    const std::vector<contender> contenders = contenders_of(asked, local, theirs);
    std::vector<contender> with_floor = contenders;
    with_floor.push_back(bandwidth_floor());
    for (const contender& each : contenders)
        if (each.memory) with_floor.push_back(bandwidth_floor(&each));
    sample_file file{ranks.rank == 0 ? asked.out : "", theirs.version(), ranks.size};
    bool right = true;
    for (const cell& each : asked.cells) {
        const bool long_enough = each.count * sizeof(element) >= asked.floor_bytes;
        turns taken{ranks, each, long_enough ? with_floor : contenders, asked.allowed};
        const std::vector<samples> found = taken.run();
        file.add(each, taken.calls_a_sample(), found);
        for (const samples& one : found) right = right && one.wrong == 0;
    }
    return right;
}

}  // namespace
}  // namespace compare

int main(int count, char** words) {
    using namespace compare;
    peer theirs{count, words};
    bool right = false;
    try {
        const options asked = parse({words + 1, words + count});
        // not before, for threads that the peer started stay free
        if (!asked.several_hosts) bind_to_core(ddl::launcher::from_environment().rank);
        right = compare_cells(asked, theirs);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "compare_bench: %s\n", failure.what());
        theirs.give_up();
    }
    return right ? 0 : 1;
}
