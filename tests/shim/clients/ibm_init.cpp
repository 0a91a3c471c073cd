// SPDX-License-Identifier: Apache-2.0
// A program of IBM DDL that leaves everything to it: init, rank, memory, allreduce in its short form, finalize.
// rows: few
// ranks: 1 2 3 4 5 6 7 8 9
// mpi-ranks: 1 2 4
// options: -mode r:%n
#include <cstring>

#include "check.hpp"
#include <ddl.hpp>

int main() {
    CHECK(ddl_init(std::getenv("DDL_OPTIONS")) == DDL_SUCCESS);
    int rank = -1;
    CHECK(ddl_rank(&rank) == DDL_SUCCESS);
    int size = 0;
    CHECK(ddl_size(&size) == DDL_SUCCESS);
    CHECK(0 <= rank && rank < size);

    constexpr int count = 100;
    float host[count];
    for (int i = 0; i < count; ++i) host[i] = static_cast<float>(i);
    void* device = nullptr;
    const std::size_t bytes = ddl_malloc(&device, 64, sizeof host);
    CHECK(bytes == 448);  // a multiple of 64, all of which may be reduced
    std::memcpy(device, host, sizeof host);
    CHECK(ddl_allreduce(device, bytes / sizeof(float)) == DDL_SUCCESS);
    std::memcpy(host, device, sizeof host);
    CHECK(ddl_free(device) == DDL_SUCCESS);
    for (int i = 0; i < count; ++i) CHECK(host[i] == static_cast<float>(i * size));
    if (rank == 0) std::printf("%g %g\n", static_cast<double>(host[1]), static_cast<double>(host[99]));
    CHECK(ddl_finalize() == DDL_SUCCESS);
}
