// SPDX-License-Identifier: Apache-2.0
// A rank that is bound to one processor and comes late each time: it is let go from there.
// ranks: 2 3
// options: -rebind_iter 2
// prints: rank 1 was slow in 3 checks in a row; it (was bound to 1 processors, and may run on all [0-9]+ of the node now|may run on all 1 processors).*all is well
#include <chrono>
#include <sched.h>
#include <thread>

#include "check.hpp"
#include <ddl.hpp>

int processors() {
    cpu_set_t all;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    return CPU_COUNT(&all);
}

int main() {
    float values[10] = {};
    int rank = -1;
    CHECK(ddl_init(std::getenv("DDL_OPTIONS")) == DDL_SUCCESS);
    CHECK(ddl_rank(&rank) == DDL_SUCCESS);
    const int given = processors();
    if (rank == 1) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
        CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
        CHECK(processors() == 1);
    }
    // until that has come about, for now and then another rank is late too; nobody sees it of one that has no more processors
    const int least = given == 1 ? 400 : 0;
    float still_bound = 1;
    for (int call = 0; call < least || (still_bound > 0 && call < 4000); ++call) {
        if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds{5});
        values[0] = rank == 1 && processors() < given ? 1.0F : 0.0F;
        CHECK(ddl_allreduce(values, 10) == DDL_SUCCESS);
        still_bound = values[0];
    }
    CHECK(processors() >= given);
    CHECK(ddl_finalize() == DDL_SUCCESS);
    if (rank == 1) std::fputs("all is well\n", stderr);
}
