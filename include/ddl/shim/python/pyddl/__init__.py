# SPDX-License-Identifier: Apache-2.0
"""Collectives of ddl on NumPy arrays, with the functions of IBM DDL's pyddl.

    import numpy, pyddl

    pyddl.init()
    gradient = numpy.ones(1000, dtype=numpy.float32)
    pyddl.allreduce(gradient)                                   # the sum over all ranks, in place
    print(pyddl.rank(), "of", pyddl.size(), gradient[0])
    pyddl.finalize()

Start it with `ddlrun --accelerators 4 python example.py`, or with mpirun. Started alone it is one rank.

Functions of IBM DDL
    init() finalize() rank() local_rank() malloc(64, bytes) free(buf)
    memcpy_host_to_device(buf, array) memcpy_device_to_host(array, buf) memsync()
    allreduce(x, n, DDL_TYPE_FLOAT, DDL_OP_SUM)
Functions beyond them
    size local_size broadcast reduce reduce_scatter all_gather gather scatter all_to_all barrier allreduce_n block
    allreduce_async allreduce_n_async broadcast_async barrier_async plan_allreduce split set_timeout set_schedule
    empty zeros mapped_arrays world initialized version

Arrays: anything with a buffer, `__array_interface__`, `__cuda_array_interface__` or `__dlpack__`; contiguous, in any order of
axes; of bool, integers, float16, bfloat16, float32, float64, complex64 or complex128. What is strided, or is read-only where
a result would replace it, raises ValueError.

Memory: `malloc` gives memory that the other ranks of the host can map, so that nothing is copied; it is what IBM DDL's GPU
memory is on a machine without one. `empty` and `zeros` make NumPy arrays of it, and `with mapped_arrays():` has NumPy make
all its arrays of it.

Errors are `pyddl.Error`, of the kinds below, with a text that names the call, the rank and the cause. A wait for another
rank ends by DDL_TIMEOUT (600 seconds), if that rank ends, or by Ctrl-C.
"""

from . import elements
from .elements import *  # noqa: F401,F403  # the DDL_TYPE and DDL_OP constants
from .communicator import Communicator
from .errors import (Broken, Error, Interrupted, InvalidArgument, Mismatch, OutOfMemory, PeerLost, SystemRefusal, Timeout,
                     Unsupported)
from .mapped_arrays import mapped_arrays
from .memory import Memory
from .pending import Plan, Request
from .process import (finalize, free, init, initialized, local_rank, local_size, malloc, memcpy_device_to_host,
                      memcpy_host_to_device, memsync, rank, size, version, world)
from .collectives import (all_gather, all_to_all, allreduce, allreduce_async, allreduce_n, allreduce_n_async, barrier,
                    barrier_async, block, broadcast, broadcast_async, empty, gather, plan_allreduce, reduce, reduce_scatter,
                    scatter, set_schedule, set_timeout, split, zeros)

DDL_SUCCESS = 0
__version__ = version()

__all__ = [
    "Broken", "Communicator", "DDL_SUCCESS", "Error", "Interrupted", "InvalidArgument", "Memory", "Mismatch",
    "OutOfMemory", "PeerLost", "Plan", "Request", "SystemRefusal", "Timeout", "Unsupported", "all_gather", "all_to_all",
    "allreduce", "allreduce_async", "allreduce_n", "allreduce_n_async", "barrier", "barrier_async", "block",
    "broadcast", "broadcast_async", "empty", "finalize", "free", "gather", "init", "initialized", "local_rank",
    "local_size", "malloc", "mapped_arrays", "memcpy_device_to_host", "memcpy_host_to_device", "memsync",
    "plan_allreduce", "rank", "reduce", "reduce_scatter", "scatter", "set_schedule", "set_timeout", "size", "split",
    "version", "world", "zeros"]
__all__ += elements.__all__
