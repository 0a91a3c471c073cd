#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pyddl.allreduce beside mpi4py's Allreduce, in turns, inside the same processes.

    mpirun -n 2 python3 benchmarks/pyddl_bench.py [--json FILE]

Each row is a size; each cell the median over calls of the time on the slowest rank, in microseconds. Before each call every rank
rewrites its input and meets the others in a barrier; neither is timed. `arrays` are NumPy's, which have moved into mapped memory by
then unless DDL_MAPPED_ARRAYS=0 is set; `mapped` those that it makes in pyddl.mapped_arrays. A result that is wrong in any bit ends the program with 1. Without mpi4py, or started by ddlrun, pyddl is alone.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import numpy

import pyddl

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent / "compare"))
import argument_types  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--min-bytes", type=argument_types.whole(4), default=4)
    parser.add_argument("--max-bytes", type=argument_types.whole(4), default=16 << 20)
    parser.add_argument("--factor", type=argument_types.whole(2), default=4, help="from one size to the next")
    parser.add_argument("--seconds", type=argument_types.seconds, default=0.3, help="for each size and contender")
    parser.add_argument("--calls", type=argument_types.whole(1), default=2000, help="at most, for each size and contender")
    parser.add_argument("--json", type=argument_types.writable, help="write the rows there")
    asked = parser.parse_args()
    if asked.max_bytes < asked.min_bytes:
        parser.error(f"--max-bytes is {asked.max_bytes}, below --min-bytes {asked.min_bytes}")
    return asked


def mpi_world():
    """mpi4py's world, if the ranks are MPI's and mpi4py is there."""
    if os.environ.get("DDL_TRANSPORT") == "shared_memory":
        return None
    try:
        from mpi4py import MPI
    except ImportError:
        return None
    return MPI if MPI.COMM_WORLD.size == int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", 1))) else None


def slowest(times):
    """The times of the slowest rank, call by call."""
    times = numpy.array(times)
    pyddl.allreduce(times, op=pyddl.DDL_OP_MAX)
    return times


class Contender:
    def __init__(self, name, data, call):
        self.name, self.data, self.call = name, data, call
        self.times, self.wrong = [], 0

    def turn(self, mine, expected):
        self.data[:] = mine
        pyddl.barrier()
        begin = time.perf_counter()
        self.call()
        self.times.append(time.perf_counter() - begin)
        self.wrong += not numpy.array_equal(self.data, expected)


def contenders(count, mpi):
    arrays = numpy.zeros(count, numpy.float32)
    with pyddl.mapped_arrays():
        mapped = numpy.zeros(count, numpy.float32)
    result = [Contender("arrays", arrays, lambda: pyddl.allreduce(arrays)),
              Contender("mapped", mapped, lambda: pyddl.allreduce(mapped))]
    if mpi is not None:
        theirs = numpy.zeros(count, numpy.float32)
        world, in_place = mpi.COMM_WORLD, mpi.IN_PLACE
        result.append(Contender("mpi4py", theirs, lambda: world.Allreduce(in_place, theirs)))
    return result


def measure(count, options, mpi):
    """The contenders of a size, after their turns."""
    row = contenders(count, mpi)
    mine = (numpy.arange(count) % 64 + pyddl.rank()).astype(numpy.float32)
    expected = (numpy.arange(count) % 64 * pyddl.size() + sum(range(pyddl.size()))).astype(numpy.float32)
    for each in row:  # warm
        for _ in range(3):
            each.turn(mine, expected)
        each.times.clear()
    once = []
    for _ in range(5):
        begin = time.perf_counter()
        for each in row:
            each.turn(mine, expected)
        once.append(time.perf_counter() - begin)
    rounds = numpy.array([min(options.calls, max(10, int(options.seconds * len(row) / max(min(once), 1e-6))))])
    pyddl.broadcast(rounds)
    for turn in range(int(rounds[0])):
        for place in range(len(row)):  # who begins changes
            row[(turn + place) % len(row)].turn(mine, expected)
    return row


def overhead():
    """Microseconds of a call on a communicator of this rank alone: what lies above the exchange itself."""
    alone = pyddl.split(pyddl.rank())
    data = numpy.zeros(100, numpy.float32)
    plan = alone.plan_allreduce(data)
    results = {}
    for name, call in (("allreduce", lambda: alone.allreduce(data)), ("plan", plan)):
        best = float("inf")
        for _ in range(20):
            begin = time.perf_counter()
            for _ in range(1000):
                call()
            best = min(best, time.perf_counter() - begin)
        results[name] = best * 1e3
    return results


def main():
    options = arguments()
    mpi = mpi_world()
    pyddl.init()
    rank, wrong, rows = pyddl.rank(), 0, []
    if rank == 0:
        print(f"{pyddl.size()} ranks over {pyddl.world().transport}, float32, sum, in place; microseconds")
    size = options.min_bytes
    while size <= options.max_bytes:
        row = measure(size // 4, options, mpi)
        cells = {each.name: statistics.median(slowest(each.times)) * 1e6 for each in row}
        wrong += sum(each.wrong for each in row)
        rows.append({"bytes": size, **cells})
        if rank == 0:
            if len(rows) == 1:
                print(f"{'bytes':>10}" + "".join(f"{name:>12}" for name in cells) + ("   mpi4py/arrays   mpi4py/mapped" if mpi else ""))
            ratio = "".join(f"{cells['mpi4py'] / cells[ours]:15.2f}x" for ours in ("arrays", "mapped")) if mpi else ""
            print(f"{size:>10}" + "".join(f"{value:12.2f}" for value in cells.values()) + ratio, flush=True)
        size *= options.factor
    total = numpy.array([wrong])
    pyddl.allreduce(total)
    calls = overhead()
    if rank == 0:
        print(f"a call on one rank: allreduce {calls['allreduce']:.2f}, a plan {calls['plan']:.2f}")
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"ranks": pyddl.size(), "rows": rows, "overhead": calls, "wrong": int(total[0])}, file, indent=1)
        if total[0]:
            print(f"{total[0]} results were wrong", file=sys.stderr)
    pyddl.finalize()
    return int(total[0] > 0)


if __name__ == "__main__":
    sys.exit(main())
