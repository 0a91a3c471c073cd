# SPDX-License-Identifier: Apache-2.0
"""The Cray PE ML Plugin, the older form of `dl_comm`, on NumPy arrays; carried out by ddl.

    import ml_comm as mc

    mc.init(2, 1, sum(each.size for each in weights))      # 2 threads a team, 1 team, elements of the model
    mc.config_team(0, 0, steps, steps, 2, 100)
    mc.broadcast(weights, 0)                                # in place
    averages = mc.gradients(gradients, 0)                   # new arrays
    mc.average(loss)                                        # in place
    mc.finalize()

All steps are synchronous: where `config_team` asks for pipelined steps, whose gradients would come one step late, they come at
once.
"""

import math
import time
import typing

import numpy

import dl_comm
from dl_comm import finalize, get_nranks, get_rank, init_mpi
from dl_comm.plugin import number
from pyddl.arrays import host_copy, listed

__all__ = ["init_mpi", "init", "finalize", "get_rank", "get_nranks", "barrier", "config_team", "broadcast", "gradients",
           "average", "check_buffers_match"]
barrier = dl_comm.barrier


class _Team:
    """What `config_team` says of a team, and how long its steps took."""

    def __init__(self):
        self.verbosity = 0
        self.perf_freq = 0
        self.steps = 0
        self.seconds = 0.0


_teams: typing.Dict[int, _Team] = {}


def init(nthreads_per_team: int, nteams: int, max_len: int, framework: typing.Optional[str] = None) -> None:
    """Starts the plugin, and creates the teams 0 to `nteams` - 1.

    max_len: elements of the model; memory grows as it is needed, so that it is a hint. framework: its name, "tensorflow".
    """
    threads = number("init", "nthreads_per_team", nthreads_per_team, 1, 1024)
    teams = number("init", "nteams", nteams, 1, 1024)
    number("init", "max_len", max_len, 0, (1 << 63) - 1)
    if framework is not None and not isinstance(framework, str):
        raise TypeError(f"init: framework is {framework!r}; pass its name")
    dl_comm.init()
    for team in range(teams):
        dl_comm.create_team(team, threads, 0)
        _teams[team] = _Team()


def config_team(teamID: int, algorithm: int, ksteps: float, max_steps: int, verbosity: int, perf_freq: int) -> None:
    """How a team works. verbosity: 0, 1 or 2; above 0 rank 0 prints times every `perf_freq` steps.

    ksteps of max_steps are to be synchronous (the last ones, if it is negative): all are. algorithm: 0.
    """
    team = _team("config_team", teamID)
    number("config_team", "algorithm", algorithm, 0, 0)
    steps = number("config_team", "max_steps", max_steps, 0, (1 << 63) - 1)
    if isinstance(ksteps, float) and math.isfinite(ksteps):  # a share of the steps is seldom a whole number
        ksteps = int(ksteps)
    number("config_team", "ksteps", ksteps, -steps, steps)
    team.verbosity = number("config_team", "verbosity", verbosity, 0, 2)
    team.perf_freq = number("config_team", "perf_freq", perf_freq, 0, (1 << 63) - 1)


def broadcast(arrays: typing.Sequence[typing.Any], root: int) -> typing.List[typing.Any]:
    """Replaces each array by that of rank `root`, and returns the list of them."""
    return dl_comm.broadcast(arrays, root)


def gradients(arrays: typing.Sequence[typing.Any], teamID: int) -> typing.List[numpy.ndarray]:
    """The averages of the arrays over all ranks, as new arrays in the same order."""
    dl_comm.plugin.require("gradients")
    with dl_comm.plugin.told("gradients", -1):
        team = _team("gradients", teamID)
    begin = time.perf_counter()
    averages = dl_comm.gradients(_copies(arrays), teamID)
    team.steps += 1
    team.seconds += time.perf_counter() - begin
    if team.verbosity > 0 and team.perf_freq > 0 and team.steps % team.perf_freq == 0:
        if get_rank() == 0:
            print(f"ml_comm: team {teamID}, step {team.steps}: {sum(each.size for each in averages)} elements, "
                  f"{team.seconds / team.perf_freq * 1e3:.3f} ms a step", flush=True)
        team.seconds = 0.0
    return averages


def average(array: numpy.ndarray) -> numpy.ndarray:
    """Replaces an array by its average over all ranks, and returns it."""
    dl_comm.plugin.require("average")
    return dl_comm.plugin.exchange("gradients", [array], 0, caller="average")[0]


def check_buffers_match(arrays: typing.Sequence[typing.Any], verbose: int = 0) -> int:
    """0 if all ranks hold the same bits, else the number of arrays that differ from rank 0's on any rank. All ranks call it."""
    dl_comm.plugin.require("check_buffers_match")
    with dl_comm.plugin.told("broadcast"):
        own = [each if isinstance(each, numpy.ndarray) else host_copy(each) for each in
               dl_comm.plugin.listed("check_buffers_match", arrays)]
    roots = dl_comm.plugin.exchange("broadcast", [numpy.array(each, order="C") for each in own], caller="check_buffers_match")
    differs = numpy.array([mine.tobytes() != first.tobytes() for mine, first in zip(own, roots)], numpy.float64)
    dl_comm.plugin.exchange("gradients", [differs], 0, caller="check_buffers_match")
    count = int((differs > 0).sum())
    if verbose and count and get_rank() == 0:
        print(f"ml_comm: arrays {numpy.flatnonzero(differs > 0).tolist()} differ between ranks", flush=True)
    return count


def _copies(arrays):
    for each in listed(arrays):
        yield host_copy(each)


def _team(name, team_id):
    dl_comm.plugin.require(name)
    if not _teams:
        raise dl_comm.plugin.Error(f"{name}: no team; call init(nthreads_per_team, nteams, max_len) first")
    return _teams[number(name, "teamID", team_id, 0, len(_teams) - 1)]
