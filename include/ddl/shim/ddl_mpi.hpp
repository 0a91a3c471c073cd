/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DDL_SHIM_DDL_MPI_HPP
#define DDL_SHIM_DDL_MPI_HPP

#include <mpi.h>

#include <stddef.h>

/* The part of IBM DDL's interface for programs that use MPI themselves: link -lddl -lddl_pack. */

#ifdef __cplusplus
extern "C" {
#endif

/** Combines `count` elements of all ranks of `communicator`, in place; the result is there when it returns. MPI must run; neither
 * `ddl_init` nor `ddl_finalize` is needed. `options` as in DDL_OPTIONS; those of the first call on a communicator count. Returns
 * DDL_SUCCESS or the number of a failure. */
int ddl_allreduce_mpi(const char* options, void* data, size_t count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm communicator);

#ifdef __cplusplus
}
#endif

#endif
