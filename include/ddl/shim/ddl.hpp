/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DDL_SHIM_DDL_HPP
#define DDL_SHIM_DDL_HPP

#include <stddef.h>

/* The C interface of IBM DDL (PowerAI, WML CE), for programs written for it: link -lddl -lddl_pack.
 *
 * All functions return DDL_SUCCESS or the number of a failure (those of <ddl.h>, which may be included beside this), and
 * write a line `[ERROR DDL-1-<id>] ...` to stderr when they fail; the process goes on. New programs use <ddl.h>.
 *
 * Where there is no GPU, device memory is memory that peers can map. Pointers may be to any memory of the process. */

#if defined(__cplusplus) && __cplusplus >= 201103L
#define DDL_SHIM_INT : int
#else
#define DDL_SHIM_INT
#endif
#if defined(__cplusplus)
#define DDL_SHIM_DEFAULT(value) = value
#else
#define DDL_SHIM_DEFAULT(value)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What went well. */
enum DDL_Result DDL_SHIM_INT { DDL_SUCCESS = 0 };

/** What an element is. */
typedef enum DDL_Type DDL_SHIM_INT {
    DDL_TYPE_FLOAT = 0,
    DDL_TYPE_HALF = 1,
    DDL_TYPE_DOUBLE = 2,
    DDL_TYPE_INT8 = 3,
    DDL_TYPE_UINT8 = 4,
    DDL_TYPE_INT16 = 5,
    DDL_TYPE_UINT16 = 6,
    DDL_TYPE_INT32 = 7,
    DDL_TYPE_UINT32 = 8,
    DDL_TYPE_INT64 = 9,
    DDL_TYPE_UINT64 = 10,
    DDL_TYPE_BFLOAT16 = 11
} DDL_Type;

/** How two elements become one. There is no average: callers scale. */
typedef enum DDL_Op DDL_SHIM_INT { DDL_OP_SUM = 0, DDL_OP_PRODUCT = 1, DDL_OP_MIN = 2, DDL_OP_MAX = 3 } DDL_Op;

/** Starts DDL, and MPI if a launcher of MPI started the process and nobody else did. `options` as in DDL_OPTIONS, such as
 * "-mode b:4x2"; NULL and "" stand for no option. All ranks call it. */
int ddl_init(const char* options);
/** Ends DDL, and MPI if it runs, whoever started it. */
int ddl_finalize(void);

/** The rank among all processes; may be called before `ddl_init`. */
int ddl_rank(int* rank);
/** The number of processes; the rank among those of this host, and their number. After `ddl_init`. */
int ddl_size(int* size);
int ddl_local_rank(int* rank);
int ddl_local_size(int* size);

/** Memory for `bytes` bytes rounded up to a multiple of `quantum`, zero at first. Returns how many bytes they are, all of which
 * may be reduced; 0 if there is none. */
size_t ddl_malloc(void** memory, size_t quantum, size_t bytes);
int ddl_free(void* memory);
int ddl_memcpy_host_to_device(void* device, const void* host, size_t bytes);
int ddl_memcpy_device_to_host(void* host, const void* device, size_t bytes);
/** Returns when the copies above are done. */
int ddl_memsync(void);

/** Combines `count` elements of all ranks, in place; the result is there when it returns. All ranks call it in one order.
 * Starts DDL from DDL_OPTIONS if nobody did. */
int ddl_allreduce(void* data, size_t count, DDL_Type type DDL_SHIM_DEFAULT(DDL_TYPE_FLOAT),
                  DDL_Op op DDL_SHIM_DEFAULT(DDL_OP_SUM));

#ifdef __cplusplus
}
#endif

#undef DDL_SHIM_INT
#undef DDL_SHIM_DEFAULT

#endif
