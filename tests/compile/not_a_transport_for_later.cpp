// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this is no transport; pass a ddl::threads, ddl::shared_memory, ddl::mpi or ddl::cluster
#include <ddl/gather.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(int& team, std::vector<float>& in, std::vector<float>& out) { ddl::gather_async(team, in, out, 1).wait(); }
#else
void call(ddl::threads& team, std::vector<float>& in, std::vector<float>& out) {
    ddl::gather_async(team, in, out, 1).wait();
}
#endif
