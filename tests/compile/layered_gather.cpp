// SPDX-License-Identifier: Apache-2.0
// expect: ddl: ddl::layered carries allreduce, reduce, broadcast and barrier; pass a ddl::cluster
#include <ddl/all_gather.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/transport/layered.hpp>
#include <ddl/transport/recording.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
void call(ddl::threads& node, ddl::recording& wire, std::vector<float>& values) {
    ddl::all_gather(ddl::layered{node, wire}, values);
}
#else
void call(ddl::threads& node, ddl::recording& wire, std::vector<float>& values) {
    ddl::broadcast(ddl::layered{node, wire}, values);
}
#endif
