// SPDX-License-Identifier: Apache-2.0
// expect: ddl: NCCL chooses its schedule inside a node itself; write ddl::hierarchical<ddl::direct, Outer>, or name none
#include <ddl/allreduce.hpp>
#include <ddl/transport/layered.hpp>
#include <ddl/transport/recording.hpp>

#include "library.hpp"

#ifdef DDL_WRONG
using inner = ddl::ring;
#else
using inner = ddl::direct;
#endif
void call(library& node, ddl::recording& wire, std::vector<float>& values) {
    ddl::allreduce<ddl::hierarchical<inner, ddl::ring>>(ddl::layered{node, wire}, values);
}
