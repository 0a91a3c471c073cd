// SPDX-License-Identifier: Apache-2.0
// The MPI that this program was built with.
#include <ddl/transport/mpi_runtime.hpp>

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "peer.hpp"

namespace compare {
namespace {

/// MPI_DATATYPE_NULL where the standard has no such element.
MPI_Datatype type() {
    if constexpr (std::is_same_v<element, float>) return MPI_FLOAT;
    else if constexpr (std::is_same_v<element, double>) return MPI_DOUBLE;
    else if constexpr (std::is_same_v<element, std::int32_t>) return MPI_INT32_T;
    else return MPI_DATATYPE_NULL;
}
MPI_Op operation() { return std::is_same_v<op, ddl::sum> ? MPI_SUM : MPI_MAX; }

/// Blocks as ours: of `count` elements the first `count % size` ranks have one more.
struct blocks {
    std::vector<int> counts;
    std::vector<int> starts;
    explicit blocks(int count) {
        int size = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        int start = 0;
        for (int rank = 0; rank < size; ++rank) {
            starts.push_back(start);
            counts.push_back(count / size + (rank < count % size ? 1 : 0));
            start += counts.back();
        }
    }
    bool even() const { return counts.front() == counts.back(); }
    int own() const {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return counts[static_cast<std::size_t>(rank)];
    }
};

collective_call call_of(const cell& asked) {
    const MPI_Datatype t = type();
    const MPI_Op o = operation();
    const int count = static_cast<int>(asked.count);
    const MPI_Comm world = MPI_COMM_WORLD;
    if (asked.collective == "barrier") return [=](const element*, element*) { MPI_Barrier(world); };
    if (t == MPI_DATATYPE_NULL) return {};
    if (!asked.tensors.empty())
        return [=, tensors = asked.tensors](const element*, element* out) {
            for (const tensor& each : tensors)
                MPI_Allreduce(MPI_IN_PLACE, out + each.first, static_cast<int>(each.count), t, o, world);
        };
    if (asked.collective == "broadcast")
        return [=](const element*, element* out) { MPI_Bcast(out, count, t, 0, world); };
    const blocks share{count};
    const int own = share.own();
    if (asked.collective == "reduce_scatter" && share.even())
        return [=](const element* in, element* out) { MPI_Reduce_scatter_block(in, out, own, t, o, world); };
    if (asked.collective == "reduce_scatter")
        return [=](const element* in, element* out) { MPI_Reduce_scatter(in, out, share.counts.data(), t, o, world); };
    if (asked.collective == "all_gather" && share.even())
        return [=](const element* in, element* out) { MPI_Allgather(in, own, t, out, own, t, world); };
    if (asked.collective == "all_gather")
        return [=](const element* in, element* out) {
            MPI_Allgatherv(in, own, t, out, share.counts.data(), share.starts.data(), t, world);
        };
    const bool replaces = asked.in_place;
    if (asked.collective == "all_to_all")
        return [=](const element* in, element* out) {
            MPI_Alltoall(replaces ? MPI_IN_PLACE : static_cast<const void*>(in), own, t, out, own, t, world);
        };
    if (asked.collective == "reduce") {
        int rank = 0;
        MPI_Comm_rank(world, &rank);
        const bool root_replaces = replaces && rank == 0;
        return [=](const element* in, element* out) {
            MPI_Reduce(root_replaces ? MPI_IN_PLACE : static_cast<const void*>(in), out, count, t, o, 0, world);
        };
    }
    if (asked.collective == "allreduce_async")
        return [=](const element* in, element* out) {
            MPI_Request begun = MPI_REQUEST_NULL;
            MPI_Iallreduce(replaces ? MPI_IN_PLACE : static_cast<const void*>(in), out, count, t, o, world, &begun);
            MPI_Wait(&begun, MPI_STATUS_IGNORE);
        };
    return [=](const element* in, element* out) {
        MPI_Allreduce(replaces ? MPI_IN_PLACE : static_cast<const void*>(in), out, count, t, o, world);
    };
}

}  // namespace

peer::peer(int& count, char**& words) {
    int level = MPI_THREAD_SINGLE;  // the least that will do suits MPI best
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
}
peer::~peer() { MPI_Finalize(); }
void peer::give_up() const {
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

std::string peer::version() const {
    char words[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(words, &length);
    const std::string whole = words;
    return whole.substr(0, whole.find_first_of(",\n"));
}

std::vector<contender> peer::contenders() const { return {{"peer", call_of}}; }

}  // namespace compare
