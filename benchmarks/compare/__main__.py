# SPDX-License-Identifier: Apache-2.0
"""Compares ddl's collectives with peers on this machine, call by call in the same processes: python3 benchmarks/compare."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import judge
import peers
import report

ELEMENT_BYTES = {"float": 4, "double": 8, "int32": 4, "bfloat16": 2}


def arguments():
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("--peer", action="append", choices=list(peers.PEERS), help="whom; again for more (openmpi, mpich)")
    parser.add_argument("--quick", action="store_true", help="sizes by powers of four, in place; below 2 minutes a peer")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--element", default="float", choices=ELEMENT_BYTES)
    parser.add_argument("--op", default="sum", choices=["sum", "max"])
    parser.add_argument("--sizes", help="bytes, with commas: 4,1K,1M")
    parser.add_argument("--transport", default="shared_memory", choices=["shared_memory", "cluster", "mpi"])
    parser.add_argument("--seconds", type=float, help="for each cell (1.5 if quick, else 3)")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures there")
    parser.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build" / "compare", help="(%(default)s)")
    parser.add_argument("--flags", default="-O3 -march=native", help="the compiler's (%(default)s)")
    parser.add_argument("--anyway", action="store_true", help="report figures that are not to be trusted, and say so")
    return parser.parse_args()


def size_of(words):
    shift = {"K": 10, "M": 20, "G": 30}.get(words[-1].upper(), 0)
    return int(words[:-1] if shift else words) << shift


def cells_of(asked):
    sizes = [size_of(each) for each in asked.sizes.split(",")] if asked.sizes else [
        4 << shift for shift in range(0, 27, 2 if asked.quick else 1)]
    bytes_each = ELEMENT_BYTES[asked.element]
    return [f"allreduce:{size // bytes_each}:0:in" for size in sizes if size >= bytes_each]


def measured(peer, program, asked):
    """One run: what the ranks wrote, with the load of the machine."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "samples"
        words = peer.words(asked.ranks) + [program, "--out", out, "--transport", asked.transport,
                                           "--seconds", str(asked.seconds or (1.5 if asked.quick else 3))]
        for cell in cells_of(asked):
            words += ["--cell", cell]
        environment = dict(os.environ, DDL_JOB=f"compare-{os.getpid()}", **peer.environment)
        load = judge.Load()
        if subprocess.run(words, env=environment, check=False).returncode != 0:
            raise peers.Missing(f"{peer.name}: the ranks ended with an error")
        load.end()
        head, *cells = [json.loads(line) for line in out.read_text().splitlines()]
    return {"name": peer.name, **head, "cells": cells}, load


def most_seen(run):
    """The state with most samples, as the one to sum up."""
    counts = {}
    for cell in run["cells"]:
        for each in cell["contenders"]:
            for index, found in enumerate(each["states"]):
                counts[index] = counts.get(index, 0) + (1 if found else 0)
    return max(counts, key=counts.get)


def main():
    asked = arguments()
    runs, refused = [], False
    for name in asked.peer or ["openmpi", "mpich"]:
        peer = peers.PEERS[name]
        try:
            start = time.monotonic()
            program = peers.built(peer, asked.build, asked.element, asked.op, asked.flags)
            run, load = measured(peer, program, asked)
        except peers.Missing as missing:
            print(f"# {missing}")
            continue
        states, doubts = judge.judged(run, asked.ranks > os.cpu_count())
        doubts += load.doubts()
        print(f"# {name}: {run['peer']}; {run['element']} {run['op']}, {run['ranks']} ranks, ours over {asked.transport}; "
              f"{run['caches']}; {run['compiler']}; {time.monotonic() - start:.0f} s")
        for doubt in doubts:
            print(f"# NOT TO BE TRUSTED: {doubt}")
        if doubts and not asked.anyway:
            refused = True
            print("# no figures: run it again on a quiet machine, or with --anyway")
            continue
        run |= {"doubts": doubts, "state_barriers_ns": [1e9 * each for each in states.medians],
                "foreign": load.foreign, "stolen": load.stolen}
        for index, barrier in enumerate(states.medians):
            print(f"# state {index + 1} of {len(states.medians)}: a barrier takes {1e9 * barrier:.0f} ns")
            print("\n".join(report.table(run, index)))
        runs.append(run)
    print("\n".join(report.summary(runs, most_seen)))
    if asked.json:
        asked.json.write_text(json.dumps({"program": "compare", "runs": runs}, indent=1))
    wrong = any(each["wrong"] for run in runs for cell in run["cells"] for each in cell["contenders"])
    return 1 if wrong else 3 if refused else 0 if runs else 2


sys.exit(main())
