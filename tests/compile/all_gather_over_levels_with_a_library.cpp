// SPDX-License-Identifier: Apache-2.0
// expect: ddl: ddl::layered with NCCL inside carries allreduce, reduce, broadcast and barrier; call over its levels
#include <ddl/all_gather.hpp>
#include <ddl/transport/layered.hpp>
#include <ddl/transport/recording.hpp>

#include "library.hpp"

#ifdef DDL_WRONG
void call(library& node, ddl::recording& wire, std::vector<float>& values, std::vector<float>& all) {
    ddl::all_gather(ddl::layered{node, wire}, values, all);
}
#else
void call(library& node, ddl::recording& wire, std::vector<float>& values, std::vector<float>& all) {
    ddl::all_gather(node, values, all);
    ddl::all_gather(wire, values, all);
}
#endif
