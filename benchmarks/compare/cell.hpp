// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/elements.hpp>
#include <ddl/op/ops.hpp>

#include <cstddef>
#include <string>

#include "tensors.hpp"

namespace compare {

// One program compares one element and one op, so that it is compiled in seconds.
#ifndef DDL_COMPARE_ELEMENT
#define DDL_COMPARE_ELEMENT float
#define DDL_COMPARE_ELEMENT_NAME "float"
#endif
#ifndef DDL_COMPARE_OP
#define DDL_COMPARE_OP ddl::sum
#define DDL_COMPARE_OP_NAME "sum"
#endif
using element = DDL_COMPARE_ELEMENT;
using op = DDL_COMPARE_OP;
inline constexpr const char* element_name = DDL_COMPARE_ELEMENT_NAME;
inline constexpr const char* op_name = DDL_COMPARE_OP_NAME;

/// What contenders are asked to do: one row of the table.
struct cell {
    std::string collective = "allreduce";  // or a model, whose tensors are reduced
    std::size_t count = 0;                 // elements of the whole vector
    std::size_t offset = 0;                // where buffers begin, in elements after a multiple of 64 bytes
    bool in_place = true;
    std::vector<tensor> tensors{};  // of the model
};

}  // namespace compare
