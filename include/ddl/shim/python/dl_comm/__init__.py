# SPDX-License-Identifier: Apache-2.0
"""The Cray PE DL Plugin's communication for deep learning, carried out by ddl.

    import dl_comm as cdl

    cdl.init_mpi()                         # ranks are known from here on
    print(cdl.get_rank(), "of", cdl.get_nranks())
    cdl.init()
    cdl.create_team(0, 2, 0)               # team 0: 2 threads, sums in single precision
    cdl.broadcast(weights, 0)              # the first weights, from rank 0 to all
    for step in range(steps):
        gradients = compute_gradients()
        gradients = cdl.gradients(gradients, 0)   # their averages over all ranks
        apply(gradients)
    cdl.finalize()

A list holds NumPy arrays, or tensors of frameworks (by `__dlpack__`, `__array_interface__`, `__cuda_array_interface__` or a
buffer): contiguous, writable, of float32, float64, float16, bfloat16, int32 or int64. Tensors and variables of TensorFlow, which
cannot be changed in place, stay as they are: the list that a call returns has new arrays in their place, to be assigned.

init, finalize, create_team, broadcast and gradients are called by all ranks, and those of one team in one order. Different teams
may communicate at once, from different threads. Start the ranks with srun, mpirun or ddlrun; one process alone is one rank.

Environment
    DL_COMM_DEFAULT_NTHREADS     threads of the one team of a program that creates none (2)
    DL_COMM_DEFAULT_PREC_LEVEL   its precision: 0 single, 1 double (0)
    DL_COMM_PIPELINE_CHUNK_KB    KB of a copy between host and GPU (an eighth of all, 1024 to 4096)
    DL_COMM_NUM_CUDA_STREAMS     CUDA streams of a thread for such copies (4)

Failures are exceptions: ValueError and TypeError for arguments, `pyddl.Error` for the rest. What one rank throws, the others
hear of: their call throws an error that names it.
"""

import atexit
import typing

from . import plugin
from .plugin import State

__all__ = ["init_mpi", "init", "finalize", "create_team", "gradients", "broadcast", "get_rank", "localrank", "get_nranks",
           "barrier"]
_MOST_TEAMS = 1024


def init_mpi() -> None:
    """Meets the other processes, so that `get_rank` and `get_nranks` can be called. A second call does nothing."""
    _meet("init_mpi")


def _meet(caller):
    if State.ended:
        plugin.require(caller)
    if not State.met:
        plugin.call("init_mpi", caller=caller)
        State.met = True
        atexit.register(finalize)  # over MPI the end of a process waits for the others, who would wait for this one


def init() -> None:
    """Starts the plugin, and meets the other processes if `init_mpi` has not. A second call does nothing."""
    _meet("init")
    if not State.started:
        plugin.call("init")
        State.started = True


def finalize() -> None:
    """Ends the plugin, at the end of the program, on every rank. A second call does nothing. Without one it is called at exit, be it
    by an exception: then calls of the others fail."""
    if State.met:
        plugin.call("finalize")
        State.ended = True
    State.met = State.started = False


def create_team(teamID: int, nthreads_in_team: int, prec_level: int = 0) -> None:
    """Creates a team of threads that communicate.

    teamID: its number, from 0. nthreads_in_team: how many threads. prec_level: sums of float32, float16 and bfloat16 in single
    precision (0) or in double (1). A program that creates no team has one for all numbers, with the threads and the precision
    of the environment.
    """
    plugin.require("create_team")
    with plugin.told("broadcast"):  # the others wait where they wait in a broadcast, too
        numbers = (plugin.number("create_team", "teamID", teamID, 0, _MOST_TEAMS - 1),
                   plugin.number("create_team", "nthreads_in_team", nthreads_in_team, 1, 1024),
                   plugin.number("create_team", "prec_level", prec_level, 0, 1))
    plugin.call("create_team", *numbers)


def gradients(tensors: typing.Iterable[typing.Any], teamID: int = 0) -> typing.List[typing.Any]:
    """Replaces each tensor by its average over all ranks, and returns the list of them.

    tensors: arrays or tensors, the same number, sizes and types in the same order on every rank; they go in one exchange.
    teamID: the team that carries it out.
    """
    plugin.require("gradients")
    with plugin.told("gradients", -1):
        team = plugin.number("gradients", "teamID", teamID, 0, _MOST_TEAMS - 1)
    return plugin.exchange("gradients", tensors, team)


def broadcast(tensors: typing.Iterable[typing.Any], root: int = 0) -> typing.List[typing.Any]:
    """Replaces each tensor by that of rank `root`, and returns the list of them."""
    plugin.require("broadcast")
    with plugin.told("broadcast"):
        root = plugin.number("broadcast", "root", root, 0, get_nranks() - 1)
    return plugin.exchange("broadcast", tensors, root=root)


def get_rank() -> int:
    """This process's rank, from 0."""
    plugin.require("get_rank", met_is_enough=True)
    return plugin.call("get_rank")


def localrank() -> int:
    """This process's rank among those of its node, from 0."""
    plugin.require("localrank", met_is_enough=True)
    return plugin.call("localrank")


def get_nranks() -> int:
    """The number of processes."""
    plugin.require("get_nranks", met_is_enough=True)
    return plugin.call("get_nranks")


def barrier() -> None:
    """Returns when all ranks have called it."""
    plugin.require("barrier")
    import numpy
    plugin.exchange("broadcast", [numpy.zeros(1, numpy.float32)], caller="barrier")
