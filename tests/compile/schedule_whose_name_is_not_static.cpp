// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this schedule has a name that cannot be read; write static constexpr const char* name
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct mine : ddl::ring {
#ifdef DDL_WRONG
    const char* name = "mine";
#else
    static constexpr const char* name = "mine";
#endif
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<mine>(team, data); }
