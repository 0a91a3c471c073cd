// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <cstddef>

namespace ddl::shim::tensorflow {

/// One tensor of a reduction, to be reduced a second time.
struct reduced {
    const char* operation;  // of TensorFlow
    std::size_t index;      // of the tensor among those of the operator
    ddl_communicator* ranks;
    std::size_t count;
    ddl_element element;  // half, bfloat16, float, double, int32, int64, or a complex one
    bool average;
};

/// Writes to `out` the sum or average of all ranks' `in`, by a way that has no schedule and no kernel of ddl in it: MPI_Allreduce if
/// ddl's messages go by MPI, else each rank gets the vectors of all, and adds them up in double in the order of the ranks. Throws.
void reduce_plainly(const reduced& tensor, const void* in, void* out);

/// Holds ddl's `result` of `in` against that. Throws on every rank if an element of one differs by more than `tolerance`, as a part of
/// the plain value, or is no number; what differs is then written to a file `ddl.dump.R.N`, R the rank and N a number, in the current folder.
void check_against_plain(const reduced& tensor, const void* in, const void* result, double tolerance);

}  // namespace ddl::shim::tensorflow
