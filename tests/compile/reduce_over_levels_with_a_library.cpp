// SPDX-License-Identifier: Apache-2.0
// expect: ddl: ddl::layered with NCCL inside carries allreduce and barrier; call over its levels
#include <ddl/reduce.hpp>
#include <ddl/transport/layered.hpp>
#include <ddl/transport/recording.hpp>

#include "library.hpp"

#ifdef DDL_WRONG
void call(library& node, ddl::recording& wire, std::vector<float>& values) {
    ddl::reduce(ddl::layered{node, wire}, values);
}
#else
void call(library& node, ddl::recording& wire, std::vector<float>& values) {
    ddl::reduce(node, values);
    ddl::reduce(wire, values);
}
#endif
