/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DDL_SHIM_DDL_H
#define DDL_SHIM_DDL_H

#include <stddef.h>

/* The collectives of ddl for C, and for every language that can call C.
 *
 *     ddl_communicator* world;
 *     if (ddl_open_environment(&world) != DDL_OK) { puts(ddl_last_error()); exit(1); }
 *     ddl_run_allreduce(world, gradient, gradient, count, DDL_FLOAT, DDL_SUM);
 *     ddl_close(world);
 *
 * Names are `ddl_<verb>_<object>`; a bare `ddl_<verb>` such as `ddl_init` is IBM DDL's, of <ddl.hpp>. Each collective
 * has three verbs: `run` blocks, `start` returns a request, `plan` returns a plan that runs again and again.
 *
 * Every function that can fail returns a status; `ddl_last_error()` then says which operation failed, on which rank, and
 * why. No function ends the process, and none waits longer than the timeout of its communicator, but for MPI's own calls in
 * `ddl_open_mpi`, `ddl_open_environment` and `ddl_split`, which know none and follow when all have met. After DDL_MISMATCH,
 * DDL_INVALID_ARGUMENT and DDL_UNSUPPORTED the communicator is as good as before and nothing was written; after the others
 * it is broken, and each further call says so.
 *
 * Any thread may call any function at any time. Calls on one communicator are carried out one after the other, in the order
 * in which they came, and that order must be the same on all ranks: threads that call side by side take a communicator each.
 * Cancel none that may be in a call (pthread_cancel): that ends the process. `ddl_interrupt` ends a call.
 *
 * `in` and `out` hold elements in contiguous memory, aligned as their type asks, of this process or of a CUDA device of its;
 * what a device has then passes through the host, after what its default stream was given. In place they are the same pointer
 * where both hold the whole vector (allreduce, reduce, all-to-all); where one of them holds a block, it is this rank's block of
 * the other. They do not overlap otherwise. `count` counts the elements of the whole vector, on every rank. Buffers belong to a
 * call until it is done. */

#if defined(__GNUC__)
#define DDL_API __attribute__((visibility("default")))
#else
#define DDL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What a function returns; errors have the numbers of ddl::errc. */
typedef int ddl_status;
enum {
    DDL_OK = 0,
    DDL_MISMATCH = 1,         /**< ranks called with different counts, elements, ops, roots, or in different order */
    DDL_PEER_LOST = 2,        /**< a peer's process has ended */
    DDL_TIMEOUT = 3,          /**< a peer did not arrive before the deadline */
    DDL_INVALID_ARGUMENT = 4, /**< this rank's own arguments make no sense */
    DDL_OUT_OF_MEMORY = 5,    /**< memory that peers can map could not be had */
    DDL_SYSTEM = 6,           /**< the operating system or MPI refused */
    DDL_BROKEN = 7,           /**< an earlier failure left the communicator unusable */
    DDL_UNSUPPORTED = 8,      /**< this library was built without it */
    DDL_INTERRUPTED = 9       /**< `ddl_interrupt` or `ddl_abort` ended the call */
};

/** What a value is. Numbers from DDL_ELEMENTS on are those of a library made with elements of its own. */
typedef int ddl_element;
enum {
    DDL_BOOL = 0, /**< one byte, 0 or 1 */
    DDL_INT8 = 1,
    DDL_UINT8 = 2,
    DDL_INT16 = 3,
    DDL_UINT16 = 4,
    DDL_INT32 = 5,
    DDL_UINT32 = 6,
    DDL_INT64 = 7,
    DDL_UINT64 = 8,
    DDL_HALF = 9,      /**< IEEE 754, 16 bits; accumulated in float */
    DDL_BFLOAT16 = 10, /**< accumulated in float */
    DDL_FLOAT = 11,
    DDL_DOUBLE = 12,
    DDL_COMPLEX_FLOAT = 13,
    DDL_COMPLEX_DOUBLE = 14,
    DDL_ELEMENTS = 15
};

/** How two values become one. Numbers from DDL_OPS on are those of a library made with ops of its own. */
typedef int ddl_op;
enum {
    DDL_SUM = 0, /**< integers wrap */
    DDL_PRODUCT = 1,
    DDL_MINIMUM = 2,           /**< a NaN wins */
    DDL_MAXIMUM = 3,           /**< a NaN wins */
    DDL_AVERAGE = 4,           /**< of integers: rounded toward zero */
    DDL_AVERAGE_IN_DOUBLE = 5, /**< of half, bfloat16 and float: added and divided in double, rounded once */
    DDL_BIT_AND = 6,
    DDL_BIT_OR = 7,
    DDL_BIT_XOR = 8,
    DDL_LOGICAL_AND = 9, /**< 0 or 1 */
    DDL_LOGICAL_OR = 10,
    DDL_LOGICAL_XOR = 11,
    DDL_OPS = 12
};

/** A group of processes, and this process's place in it. */
typedef struct ddl_communicator ddl_communicator;
/** A collective that is set up once and run again and again. */
typedef struct ddl_plan ddl_plan;
/** A collective under way. */
typedef struct ddl_request ddl_request;

/* ---- errors and names ---- */

/** What the last failure on this thread was: operation, rank, what is, what was expected, what to do. Never NULL; stays valid
 * until the next failure on this thread. A success does not clear it. */
DDL_API const char* ddl_last_error(void);
/** The name of a status, such as "DDL_TIMEOUT". Never NULL. */
DDL_API const char* ddl_name_status(ddl_status status);
/** The version of this library, such as "0.1.0". */
DDL_API const char* ddl_version(void);

/** The number of an element or op by its name in C++, such as "float" or "my::pixel", as the library was built with; -1 if it
 * has none. Built-in ones go by their name with or without "ddl::". */
DDL_API ddl_element ddl_find_element(const char* name);
DDL_API ddl_op ddl_find_op(const char* name);
/** The other way; NULL if there is none. */
DDL_API const char* ddl_name_element(ddl_element element);
DDL_API const char* ddl_name_op(ddl_op op);
/** Bytes of an element; 0 if there is none of that number. */
DDL_API size_t ddl_size_element(ddl_element element);

/* ---- communicators ---- */

/** All ranks, as the launcher says: over MPI if MPI runs in this process already, or if an MPI launcher started it (mpirun,
 * srun with PMI); else processes of this host by RANK, WORLD_SIZE and DDL_JOB; else this process alone. The variable
 * DDL_TRANSPORT decides if it is set: "mpi" or "shared_memory". All ranks call it; blocks until all have come. May be called
 * again while the first is open: each gets messages of its own. */
DDL_API ddl_status ddl_open_environment(ddl_communicator** world);
/** Processes of this host, without MPI. All pass the same `job`, which no other run on this host has at the same time, and the
 * same `size`. `seconds` is the timeout of this and of later waits; 0 for that of DDL_TIMEOUT, else 600. */
DDL_API ddl_status ddl_open_job(const char* job, int rank, int size, double seconds, ddl_communicator** world);
/** The ranks of an MPI communicator: `communicator` is the address of an MPI_Comm, or NULL for MPI_COMM_WORLD, which starts
 * MPI if nobody did. All its ranks call it, and wait for each other for `seconds`; 0 for those of DDL_TIMEOUT, else 600. Nothing more can be
 * made of that MPI communicator if a rank did not come. Works on a duplicate, and on shared memory inside each node. */
DDL_API ddl_status ddl_open_mpi(const void* communicator, double seconds, ddl_communicator** world);
/** A communicator of the ranks that pass the same `color`, 0 or more, ordered by `key`, then by rank. All ranks call it. */
DDL_API ddl_status ddl_split(ddl_communicator* ranks, int color, int key, ddl_communicator** part);
/** Lets go of a communicator; its plans can no longer be run, its requests are waited for, which `ddl_interrupt` may end. NULL
 * does nothing. Over MPI a process that ends without it waits for its requests, too, and ends the calls of its other threads. */
DDL_API ddl_status ddl_close(ddl_communicator* ranks);

/** This process's rank, the number of ranks; the same among the ranks of this process's node. -1 if it is no communicator. */
DDL_API int ddl_get_rank(const ddl_communicator* ranks);
DDL_API int ddl_get_size(const ddl_communicator* ranks);
DDL_API int ddl_get_local_rank(const ddl_communicator* ranks);
DDL_API int ddl_get_local_size(const ddl_communicator* ranks);
/** "shared_memory" or "cluster" (shared memory inside nodes, MPI between them); NULL if it is no communicator. */
DDL_API const char* ddl_get_transport(const ddl_communicator* ranks);

/** How long a wait for a peer may take from now on. */
DDL_API ddl_status ddl_set_timeout(ddl_communicator* ranks, double seconds);
/** The schedule of later reductions, by its name in C++: "tuned", the default, or one that the library was built with. The delivered
 * ones have "enhanced", "rings" and "halvings" for sums of float, double and half. All ranks set the same. */
DDL_API ddl_status ddl_set_schedule(ddl_communicator* ranks, const char* name);
/** The same in IBM DDL's words, as DDL_OPTIONS holds them: "-mode b:4x2x3" is a hierarchy of 4 ranks, 2 groups of these, 3 of
 * those, whose product is the number of ranks. Counts for the sums that the library has such a schedule for. */
DDL_API ddl_status ddl_set_options(ddl_communicator* ranks, const char* options);
/** Ends the call under way on this communicator: it returns DDL_INTERRUPTED, the peers' calls DDL_BROKEN or DDL_PEER_LOST, and
 * the communicator is broken. For another thread; does nothing if no call is under way. Over several nodes MPI must have been
 * started with MPI_THREAD_MULTIPLE, as it is by this library. */
DDL_API ddl_status ddl_interrupt(ddl_communicator* ranks);
/** For a program that gives up: tells the peers that this rank takes part in no call any more, and `why`, in few words, or NULL.
 * Waits for nobody. Their calls, under way or to come, fail with these words, DDL_BROKEN; those of this rank return
 * DDL_INTERRUPTED. For any thread; over several nodes as `ddl_interrupt`. */
DDL_API ddl_status ddl_abort(ddl_communicator* ranks, const char* why);

/* ---- memory ---- */

/** `bytes` bytes that the ranks of the node can map, zero at first: collectives copy nothing there. Page aligned. */
DDL_API ddl_status ddl_allocate(ddl_communicator* ranks, size_t bytes, void** data);
/** Gives it back; may happen after its communicator was closed. NULL does nothing; anything but the pointer that
 * `ddl_allocate` gave is DDL_INVALID_ARGUMENT, as is a collective on memory that was given back. */
DDL_API ddl_status ddl_deallocate(void* data);

/* ---- collectives, blocking ---- */

/** Where the block of `rank` begins in a vector of `count` elements cut for `size` ranks, and how long it is. */
DDL_API size_t ddl_first_of_block(size_t count, int size, int rank);
DDL_API size_t ddl_count_of_block(size_t count, int size, int rank);

/** The combination of all `in`, in `out` of every rank. */
DDL_API ddl_status ddl_run_allreduce(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                     ddl_element element, ddl_op op);
/** The same for `tensors` buffers of `counts` elements each, in place, in one exchange. They must not overlap, which no call
 * looks for: list one that is used twice once. */
DDL_API ddl_status ddl_run_allreduce_n(ddl_communicator* ranks, void* const* data, const size_t* counts, size_t tensors,
                                       ddl_element element, ddl_op op);
/** Block `rank` of the combination, in `out`, which holds that block. In place: it replaces that block of `in`. */
DDL_API ddl_status ddl_run_reduce_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                          ddl_element element, ddl_op op);
/** The blocks of all ranks, in `out` of every rank. In place: `in` is this rank's block of it. */
DDL_API ddl_status ddl_run_all_gather(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                      ddl_element element);
/** The root's vector, on every rank. */
DDL_API ddl_status ddl_run_broadcast(ddl_communicator* ranks, void* data, size_t count, ddl_element element, int root);
/** The combination of all `in`, in `out` of the root; elsewhere `out` may be NULL. */
DDL_API ddl_status ddl_run_reduce(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                                  ddl_op op, int root);
/** The blocks of all ranks, in `out` of the root; elsewhere `out` may be NULL. In place, on the root: `in` is its block of
 * `out`. */
DDL_API ddl_status ddl_run_gather(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                                  int root);
/** Each rank's block of the root's `in`, in `out`; elsewhere `in` may be NULL. In place, on the root: `out` is its block of
 * `in`. */
DDL_API ddl_status ddl_run_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                   ddl_element element, int root);
/** Block `d` of rank `s` becomes block `s` of rank `d`. `count` is a multiple of the number of ranks. */
DDL_API ddl_status ddl_run_all_to_all(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                      ddl_element element);
/** Returns when all ranks have called it. */
DDL_API ddl_status ddl_run_barrier(ddl_communicator* ranks);

/* ---- the same, not blocking: a request, to be given back with ddl_free_request ---- */

DDL_API ddl_status ddl_start_allreduce(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                       ddl_element element, ddl_op op, ddl_request** started);
DDL_API ddl_status ddl_start_allreduce_n(ddl_communicator* ranks, void* const* data, const size_t* counts,
                                         size_t tensors, ddl_element element, ddl_op op, ddl_request** started);
DDL_API ddl_status ddl_start_reduce_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                            ddl_element element, ddl_op op, ddl_request** started);
DDL_API ddl_status ddl_start_all_gather(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                        ddl_element element, ddl_request** started);
DDL_API ddl_status ddl_start_broadcast(ddl_communicator* ranks, void* data, size_t count, ddl_element element, int root,
                                       ddl_request** started);
DDL_API ddl_status ddl_start_reduce(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                    ddl_element element, ddl_op op, int root, ddl_request** started);
DDL_API ddl_status ddl_start_gather(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                    ddl_element element, int root, ddl_request** started);
DDL_API ddl_status ddl_start_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                     ddl_element element, int root, ddl_request** started);
DDL_API ddl_status ddl_start_all_to_all(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                        ddl_element element, ddl_request** started);
DDL_API ddl_status ddl_start_barrier(ddl_communicator* ranks, ddl_request** started);

/** Blocks until the collective is done; returns its status, as often as it is asked. */
DDL_API ddl_status ddl_wait_request(ddl_request* request);
/** Blocks for `seconds` at most. `*done` tells whether the collective is done; its status is returned if so, else DDL_OK.
 * A signal that this thread handles ends the wait, so that the program may look at what its handler left. */
DDL_API ddl_status ddl_wait_request_for(ddl_request* request, double seconds, int* done);
/** The same without blocking. */
DDL_API ddl_status ddl_test_request(ddl_request* request, int* done);
/** Calls `then` once when the collective is done: from the thread that carried it out, or at once if it is done. `error` is
 * what `ddl_last_error` would say, "" after DDL_OK. `then` must not call the communicator, but may free the request. In
 * a thread of the library signals are blocked, which a process that `then` starts inherits. Of a request's several callbacks
 * each is called. */
typedef void (*ddl_callback)(ddl_status status, const char* error, void* context);
DDL_API ddl_status ddl_on_completion(ddl_request* request, ddl_callback then, void* context);
/** A file descriptor that becomes readable when the collective is done, for event loops. The request owns it. */
DDL_API ddl_status ddl_get_descriptor(ddl_request* request, int* descriptor);
/** Lets go of a request; does not stop it. NULL does nothing. */
DDL_API ddl_status ddl_free_request(ddl_request* request);

/* ---- plans ---- */

DDL_API ddl_status ddl_plan_allreduce(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                      ddl_element element, ddl_op op, ddl_plan** plan);
DDL_API ddl_status ddl_plan_allreduce_n(ddl_communicator* ranks, void* const* data, const size_t* counts,
                                        size_t tensors, ddl_element element, ddl_op op, ddl_plan** plan);
DDL_API ddl_status ddl_plan_reduce_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                           ddl_element element, ddl_op op, ddl_plan** plan);
DDL_API ddl_status ddl_plan_all_gather(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                       ddl_element element, ddl_plan** plan);
DDL_API ddl_status ddl_plan_broadcast(ddl_communicator* ranks, void* data, size_t count, ddl_element element, int root,
                                      ddl_plan** plan);
DDL_API ddl_status ddl_plan_reduce(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                   ddl_element element, ddl_op op, int root, ddl_plan** plan);
DDL_API ddl_status ddl_plan_gather(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                   ddl_element element, int root, ddl_plan** plan);
DDL_API ddl_status ddl_plan_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                    ddl_element element, int root, ddl_plan** plan);
DDL_API ddl_status ddl_plan_all_to_all(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                       ddl_element element, ddl_plan** plan);

/** Runs a plan; blocks. All ranks run equal plans in equal order. */
DDL_API ddl_status ddl_run_plan(ddl_plan* plan);
/** The same without blocking. */
DDL_API ddl_status ddl_start_plan(ddl_plan* plan, ddl_request** started);
/** One line: schedule, transport, protocol, and why. Writes at most `capacity` bytes with the final 0. */
DDL_API ddl_status ddl_explain_plan(const ddl_plan* plan, char* line, size_t capacity);
/** Lets go of a plan. NULL does nothing. */
DDL_API ddl_status ddl_free_plan(ddl_plan* plan);

#ifdef __cplusplus
}
#endif

#endif
