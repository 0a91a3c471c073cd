// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the compiler cannot run this schedule for 3 ranks; make chunks, rounds and round constexpr, and keep to what their arrays hold
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct mine : ddl::ring {
#ifdef DDL_WRONG
    static int chunks(int size) { return size; }
#else
    static constexpr int chunks(int size) { return size; }
#endif
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<mine>(team, data); }
