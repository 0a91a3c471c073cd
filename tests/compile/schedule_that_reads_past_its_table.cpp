// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the compiler cannot run this schedule for 3 ranks; make chunks, rounds and round constexpr, and keep to what their arrays hold
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct mine : ddl::tree {
    static constexpr auto round(int rank, int size, int k) {
#ifdef DDL_WRONG
        constexpr int rounds[] = {0, 1, 2};  // of 3 ranks there are 4
#else
        constexpr int rounds[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
#endif
        return ddl::tree::round(rank, size, rounds[k]);
    }
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<mine>(team, data); }
