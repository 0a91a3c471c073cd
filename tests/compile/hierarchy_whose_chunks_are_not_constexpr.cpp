// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the compiler cannot read the chunks of a schedule that this one is made of; make chunks constexpr
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
void call(ddl::threads& team, std::vector<float>& data) {
    ddl::allreduce<ddl::hierarchical<mine, ddl::ring>>(team, data);
}
