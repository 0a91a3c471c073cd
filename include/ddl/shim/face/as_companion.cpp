// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/companion.hpp>
#include <ddl/transport/mpi_runtime.hpp>

#include <cstring>

using namespace ddl::shim;
using ddl::mpi_runtime;

namespace {

ddl_status world_rank(int* rank, const listener& heard) noexcept {
    return guarded(heard, "rank",
                   [&] { mpi_runtime::check(MPI_Comm_rank(MPI_COMM_WORLD, rank), "MPI_Comm_rank", "rank", -1); });
}

ddl_status finalize(const listener& heard) noexcept {
    return guarded(heard, "finalize", [] {
        if (!mpi_runtime::is_up()) return;
        mpi_runtime::sweep();
        mpi_runtime::check(MPI_Finalize(), "MPI_Finalize", "finalize", -1);
    });
}

}  // namespace

extern "C" DDL_API const companion* ddl_companion(const char* build) noexcept {
    static const companion ours{openers().data(), openers().size(), mpi_runtime::is_up, world_rank, finalize};
    return std::strcmp(build, companion_build) == 0 ? &ours : nullptr;
}
