// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/tensorflow/mpi_sum.hpp>
#include <ddl/transport/mpi_runtime.hpp>

#include <algorithm>

using ddl::errc;
using ddl::error;
using ddl::mpi_runtime;

namespace {

void require(int code, const char* call) { mpi_runtime::check(code, call, "MPI_Allreduce", -1); }

MPI_Datatype type_of(ddl_element element) {
    switch (element) {
        case DDL_FLOAT: return MPI_FLOAT;
        case DDL_DOUBLE: return MPI_DOUBLE;
        case DDL_INT64: return MPI_INT64_T;
        default:
            throw error(errc::invalid_argument, "MPI_Allreduce", -1, -1,
                        "element %d is none that MPI adds; convert it to float", element);
    }
}

/// Messages of their own: MPI_COMM_WORLD may be in use by the program.
MPI_Comm own_world() {
    static const MPI_Comm duplicate = [] {
        MPI_Comm made = MPI_COMM_NULL;
        require(MPI_Comm_dup(MPI_COMM_WORLD, &made), "MPI_Comm_dup");
        return made;
    }();
    return duplicate;
}

}  // namespace

extern "C" DDL_API ddl_status ddl_sum_by_mpi(void* data, std::size_t count, ddl_element element,
                                             const ddl::shim::listener& heard) noexcept {
    return ddl::shim::guarded(heard, "MPI_Allreduce", [&] {
        if (!mpi_runtime::is_up())
            throw error(errc::invalid_argument, "MPI_Allreduce", -1, -1, "MPI is not running; start it first");
        if (!mpi_runtime::any_thread())
            throw error(errc::system, "MPI_Allreduce", -1, -1,
                        "MPI was not started with MPI_THREAD_MULTIPLE, and this thread may be any; start it so");
        const MPI_Datatype type = type_of(element);
        constexpr std::size_t most = std::size_t{1} << 30;  // MPI counts in int
        const std::size_t width = ddl_size_element(element);
        for (std::size_t done = 0; done < count; done += most)
            require(MPI_Allreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + done * width,
                                  static_cast<int>(std::min(most, count - done)), type, MPI_SUM, own_world()),
                    "MPI_Allreduce");
    });
}
