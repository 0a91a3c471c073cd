// SPDX-License-Identifier: Apache-2.0
// A program of MPI that calls IBM DDL for its reductions, and neither init nor finalize.
// ranks: none
// mpi-ranks: 1 2 3 4 5
// options: -mode b:%n -dump_iter 3 -dbg_level 1
// prints: [1-5] ranks over cluster, options .*call 3: slowest learner [0-9]+, end to end.*all is well
#include <ddl_mpi.hpp>

constexpr auto reduce = &ddl_allreduce_mpi;  // of a header that needs no other before it

#include <atomic>
#include <chrono>
#include <complex>
#include <cstdint>
#include <cstring>
#include <ddl.h>
#include <dlfcn.h>
#include <string>
#include <thread>

#include "../heard.hpp"
#include "check.hpp"
#include <ddl.hpp>

int main(int arguments, char** words) {
    float early = 1;
    CHECK(lacks_line(6, "MPI is not running; call MPI_Init first", [&] {
              return reduce("", &early, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          }).empty());
    CHECK(std::strstr(ddl_last_error(), "MPI is not running; call MPI_Init first") != nullptr);
    int level = 0;
    MPI_Init_thread(&arguments, &words, MPI_THREAD_MULTIPLE, &level);
    int rank = -1;
    CHECK(ddl_rank(&rank) == DDL_SUCCESS);
    int world_rank = -1;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(rank == world_rank);
    std::atomic<bool> over{false};
    std::thread loads{[&over] {  // as an import of Python in another thread does
        while (!over)
            if (void* const other = ::dlopen("libanl.so.1", RTLD_NOW)) ::dlclose(other);
    }};
    for (int time = 0; time < 1000; ++time) CHECK(ddl_rank(&rank) == DDL_SUCCESS && rank == world_rank);
    over = true;
    loads.join();

    constexpr int count = 100;
    void* device = nullptr;
    const std::size_t bytes = ddl_malloc(&device, 64, count * sizeof(float));
    CHECK(bytes == 448);
    float host[count];
    for (int time = 0; time < 3; ++time) {
        for (int i = 0; i < count; ++i) host[i] = static_cast<float>(i);
        std::memcpy(device, host, sizeof host);
        CHECK(reduce(std::getenv("DDL_OPTIONS"), device, bytes / sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) ==
              DDL_SUCCESS);
        std::memcpy(host, device, sizeof host);
        for (int i = 0; i < count; ++i) CHECK(host[i] == static_cast<float>(i * size));
    }

    // other types, operations and communicators than the examples had
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    int part_size = 0;
    MPI_Comm_size(part, &part_size);
    long long greatest = rank;
    CHECK(ddl_allreduce_mpi("", &greatest, 1, MPI_LONG_LONG, MPI_MAX, part) == DDL_SUCCESS);
    CHECK(greatest == rank % 2 + 2 * (part_size - 1));
    MPI_Comm_free(&part);  // and what was kept for it

    // types of other languages, which an MPI without these may lack
    const auto one_of_each = [&](MPI_Datatype type, auto one, bool built_in) {
        int length = 0;
        if (type == MPI_DATATYPE_NULL || MPI_Type_size(type, &length) != MPI_SUCCESS ||
            static_cast<std::size_t>(length) != sizeof one)
            return;
        const auto sum = static_cast<decltype(one)>(static_cast<float>(size));
        const int status = ddl_allreduce_mpi("", &one, 1, type, MPI_SUM, MPI_COMM_WORLD);
        CHECK(status == DDL_SUCCESS ? one == sum : !built_in && status == DDL_UNSUPPORTED);
    };
    one_of_each(MPI_REAL, 1.0F, true);
    one_of_each(MPI_REAL4, 1.0F, true);
    one_of_each(MPI_REAL8, 1.0, true);
    one_of_each(MPI_DOUBLE_PRECISION, 1.0, true);
    one_of_each(MPI_INTEGER, 1, true);
    one_of_each(MPI_INTEGER1, std::int8_t{1}, false);
    one_of_each(MPI_INTEGER4, 1, true);
    one_of_each(MPI_INTEGER8, std::int64_t{1}, true);
    one_of_each(MPI_AINT, MPI_Aint{1}, true);
    one_of_each(MPI_OFFSET, MPI_Offset{1}, true);
    one_of_each(MPI_COUNT, MPI_Count{1}, true);
    one_of_each(MPI_COMPLEX, std::complex<float>{1}, false);
    one_of_each(MPI_DOUBLE_COMPLEX, std::complex<double>{1}, false);
    one_of_each(MPI_CXX_FLOAT_COMPLEX, std::complex<float>{1}, false);
    one_of_each(MPI_CXX_DOUBLE_COMPLEX, std::complex<double>{1}, false);
    bool every = true;
    const int of_bools = ddl_allreduce_mpi("", &every, 1, MPI_CXX_BOOL, MPI_LAND, MPI_COMM_WORLD);
    CHECK(of_bools == DDL_SUCCESS || of_bools == DDL_UNSUPPORTED || MPI_CXX_BOOL == MPI_DATATYPE_NULL);

    // options that make no sense on one rank are that rank's error, a mismatch on the others, and tried again
    const std::string told = "allreduce_mpi, rank " + std::to_string(rank) + ": ";
    MPI_Comm_dup(MPI_COMM_WORLD, &part);
    const auto sum_with = [&](const char* options) {
        float one = 1;
        const int status = ddl_allreduce_mpi(options, &one, 1, MPI_FLOAT, MPI_SUM, part);
        CHECK(status != DDL_SUCCESS || one == static_cast<float>(size));
        return status;
    };
    CHECK(lacks_line(
              6, rank == size - 1 ? (told + "the mode begins with one letter of bnrmcp").c_str() : "see its own error",
              [&] { return sum_with(rank == size - 1 ? "-mode z:1" : ""); })
              .empty());
    CHECK(sum_with("") == DDL_SUCCESS);
    MPI_Comm_free(&part);

    // two threads begin with communicators of their own, in another order on each rank
    MPI_Comm parts[2];
    for (MPI_Comm& each : parts) MPI_Comm_dup(MPI_COMM_WORLD, &each);
    const auto first_sum = [&](int which) {
        if (which == rank % 2) std::this_thread::sleep_for(std::chrono::milliseconds{20});  // the other waits for peers
        float one = 1;
        CHECK(ddl_allreduce_mpi("", &one, 1, MPI_FLOAT, MPI_SUM, parts[which]) == DDL_SUCCESS);
        CHECK(one == static_cast<float>(size));
    };
    std::thread other{first_sum, 1};
    first_sum(0);
    other.join();
    for (MPI_Comm& each : parts) MPI_Comm_free(&each);

    // what it does not know it refuses, and goes on
    CHECK(lacks_line(6, "no op for this MPI_Op", [&] {
              return ddl_allreduce_mpi("", &greatest, 1, MPI_LONG_LONG, MPI_REPLACE, MPI_COMM_WORLD);
          }).empty());
    CHECK(lacks_line(6, "no element for MPI_PACKED", [&] {
              return ddl_allreduce_mpi("", &greatest, 1, MPI_PACKED, MPI_SUM, MPI_COMM_WORLD);
          }).empty());
    CHECK(std::strstr(ddl_last_error(), "no element for MPI_PACKED") != nullptr);
    CHECK(ddl_allreduce_mpi("", &greatest, static_cast<std::size_t>(-1), MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD) !=
          DDL_SUCCESS);
    CHECK(lacks_line(6, "MPI_", [&] {
              return ddl_allreduce_mpi("", &greatest, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_NULL);
          }).empty());
    CHECK(lacks_line(6, "data is MPI_IN_PLACE", [&] {
              return ddl_allreduce_mpi("", MPI_IN_PLACE, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
          }).empty());
    CHECK(ddl_allreduce_mpi("", host, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == DDL_SUCCESS);

    CHECK(ddl_free(device) == DDL_SUCCESS);
    MPI_Finalize();
    CHECK(lacks_line(6, "MPI has ended in this process; call before MPI_Finalize", [&] {
              return ddl_allreduce_mpi("", host, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          }).empty());
    CHECK(lacks_line(6, "MPI has ended in this process; make communicators before MPI_Finalize", [&] {
              return ddl_init("");
          }).empty());
    if (rank == 0) std::fputs("all is well\n", stderr);
}
