/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DDL_SHIM_DL_COMM_H
#define DDL_SHIM_DL_COMM_H

/* The C interface of the Cray PE DL Plugin, for programs written for it: link -ldl_comm.
 *
 * All functions return an int: what was asked for, or 0; a failure is negative and leaves a line on stderr. New programs use
 * <ddl.h>, whose ddl_last_error says more.
 *
 * Lists are [tower][tensor]; lengths are elements. Buffers of one position are combined over all processes, not over towers.
 * init, finalize, broadcast, gradients and the creation of teams are called by all ranks, and those of one team in one order;
 * different teams may communicate at once, from different threads. */

#if defined(__cplusplus) && __cplusplus >= 201103L
#define DDL_SHIM_INT : int
#else
#define DDL_SHIM_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What a tensor holds. */
typedef enum dlDataType_t DDL_SHIM_INT {
    DL_COMM_FLOAT = 0,
    DL_COMM_DOUBLE = 1,
    DL_COMM_HALF = 2,
    DL_COMM_BFLOAT16 = 3,
    DL_COMM_INT32 = 4,
    DL_COMM_INT64 = 5
} dlDataType_t;

/** Meets the other processes, so that ranks are known; `dl_comm_init` does it if nobody did. */
int dl_comm_init_mpi(void);
/** Starts the plugin. All ranks call it: a variable that one of them cannot read is an error on all. */
int dl_comm_init(void);
/** Ends it, and MPI if it was started here. A second call does nothing. */
int dl_comm_finalize(void);

/** Makes team `teamID`, counted from 0, of `nthreads_in_team` threads, each with communicators of its own. `prec_level`: sums of
 * float, half and bfloat16 in float (0) or in double (1); double is always added in double. A program that makes no team gets
 * one of DL_COMM_DEFAULT_NTHREADS threads and of DL_COMM_DEFAULT_PREC_LEVEL at its first use, whatever its number. */
int dl_create_team(int teamID, int nthreads_in_team, int prec_level);
/** The same. */
int dl_comm_create_team(int teamID, int nthreads_in_team, int prec_level);

/** Replaces each buffer by its average over all processes, all of them in one exchange of the team. */
int dl_comm_gradients(void*** all_tensors, int** lengths, dlDataType_t** dtypes, int* ntensors_on_tower, int ntowers,
                      int teamID);
/** Replaces each buffer by that of rank `root`. */
int dl_comm_broadcast(void*** all_tensors, int** lengths, dlDataType_t** dtypes, int* ntensors_on_tower, int ntowers,
                      int root);

/** The rank, the rank on this node, the number of processes; negative before `dl_comm_init_mpi` and `dl_comm_init`. */
int dl_comm_get_rank(void);
int dl_comm_localrank(void);
int dl_comm_get_nranks(void);

/* Beyond the product, for faces in other languages. */

/** The words of this thread's last failure, as on stderr. Never NULL. */
const char* dl_comm_last_error(void);
/** This rank cannot make the call of `dl_comm_gradients` or of `dl_comm_broadcast` that the others make: they get an error that
 * names it, and go on. Blocks until they have come. */
int dl_comm_refuse_gradients(int teamID);
int dl_comm_refuse_broadcast(void);

#ifdef __cplusplus
}
#endif

#undef DDL_SHIM_INT

#endif
