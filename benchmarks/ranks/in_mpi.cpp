// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/mpi_runtime.hpp>

#include <climits>
#include <string>

#include "ranks.hpp"

namespace {
/// The first line of what the library says of itself: `Open MPI v4.1.4`.
std::string library() {
    char words[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(words, &length);
    const std::string version = words;
    return version.substr(0, version.find_first_of(",\n"));
}

MPI_Datatype type_of(const std::string& element) {
    return element == "float" ? MPI_FLOAT : element == "double" ? MPI_DOUBLE : MPI_INT32_T;
}

std::vector<contender> rivals(const settings& asked) {
    if (!asked.against_mpi) return {};
    const MPI_Datatype type = type_of(asked.element);
    const MPI_Op op = asked.op == "sum" ? MPI_SUM : MPI_MAX;
    const auto prepare = [type, op](const void* in, void* out, std::size_t count) -> prepared_call {
        if (count > INT_MAX) throw usage_error("--mpi counts in int, and a size has more elements; lower --max-bytes");
        const void* const from = in == out ? MPI_IN_PLACE : in;
        const auto timed = [from, out, elements = static_cast<int>(count), type, op] {
            return seconds_of([&] { MPI_Allreduce(from, out, elements, type, op, MPI_COMM_WORLD); });
        };
        return {timed, "MPI_Allreduce of " + library()};
    };
    return {{"MPI_Allreduce", prepare}};
}
}  // namespace

ending in_mpi(const settings& asked, const std::function<ending(const std::vector<contender>&)>& body) {
    const bool wanted = asked.against_mpi || asked.transport == "mpi" || asked.transport == "cluster";
    if (!wanted) return body({});
    int level = MPI_THREAD_SINGLE;  // the least that will do suits MPI best
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    const ending how = or_refused([&] {
        ddl::mpi_runtime::start();  // it is up; this asks whether the launcher is that of another MPI
        return body(rivals(asked));
    });
    if (how == ending::refused) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(how));
    MPI_Finalize();
    return how;
}
