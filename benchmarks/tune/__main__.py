# SPDX-License-Identifier: Apache-2.0
"""Measures on this machine where ddl's ways cross, and prints a header that tells the compiler:
python3 benchmarks/tune > my_machine.hpp"""
import argparse
import math
import os
import pathlib
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import header
import thresholds

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "compare"))  # its judge, and how it builds
import argument_types  # noqa: E402
import judge  # noqa: E402
import peers  # noqa: E402

TRANSPORTS = ["threads", "shared_memory", "mpi", "cluster"]
OVER_MEMORY = ("threads", "shared_memory")
WITHOUT_MPI = peers.Peer("without_mpi")
MPIS = {name: each for name, each in peers.PEERS.items() if each.source == "mpi"}
MPIS["path"] = peers.Peer("path", "mpicxx", ["mpirun"], install="an MPI, or name another one by --mpi")
# of direct_limits.hpp, where two of them are left to the processor
ON_AMD = "AuthenticAMD" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
LIMITS = {"one_shot": 4096, "mapped": 8192 if ON_AMD else 4097, "mapped_move": 8192,
          "segment": 131072}
SHORT = [1 << shift for shift in range(6, 18)]   # bytes of vectors among which the limits lie: 64 B to 128 KiB
MOVED = [1 << shift for shift in range(6, 20)]   # of what a rank hands out where blocks only move: 64 B to 512 KiB
LONG = [1 << shift for shift in range(18, 25, 2)]  # of those that go in segments: 256 KiB to 16 MiB
MESSAGES = [1 << shift for shift in range(8, 23)]  # 256 B to 4 MiB


def arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/tune", description=__doc__,
                                     epilog="Ends with 0; with 1 if a result was wrong, 2 if nothing could be "
                                            "measured, 3 if the machine was not quiet enough. What it prints then stops "
                                            "the compiler.")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS,
                        help="again for more (threads and shared_memory)")
    parser.add_argument("--ranks", type=argument_types.ranks(2), help="processes or threads, each bound to a core (2)")
    parser.add_argument("--mpi", choices=MPIS,
                        help="whose, as benchmarks/compare knows them; path: mpicxx and mpirun that are found there "
                             "(openmpi)")
    parser.add_argument("--launcher", type=shlex.split,
                        help="mpi and cluster: what starts the ranks, such as 'mpirun -n 16 --host a:8,b:8'; "
                             "they then go where it puts them")
    parser.add_argument("--seconds", type=argument_types.seconds, default=0.5, help="for each cell (%(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build" / "compare", help="(%(default)s)")
    parser.add_argument("--programs", type=pathlib.Path, help="a folder that has them built already")
    parser.add_argument("--flags", default="-O3 -march=native", help="the compiler's (%(default)s)")
    parser.add_argument("--samples", type=argument_types.writable,
                        help="write all samples there as well, a line of JSON a cell")
    parser.add_argument("--anyway", action="store_true", help="a header even where it is not to be trusted")
    asked = parser.parse_args(argument_types.flags_joined(sys.argv[1:]))
    asked.build = asked.build.resolve()
    asked.transport = list(dict.fromkeys(asked.transport or ["threads", "shared_memory"]))
    over_memory = [each in OVER_MEMORY for each in asked.transport]
    if all(over_memory) and (asked.launcher or asked.mpi):
        parser.error("--launcher and --mpi are for --transport mpi and cluster")
    if asked.ranks and asked.launcher and not any(over_memory):
        parser.error("--launcher says how many ranks there are; leave out --ranks")
    asked.ranks = asked.ranks or 2
    asked.mpi = asked.mpi or "openmpi"
    return asked


def cells(transport, ranks):
    if transport in OVER_MEMORY:
        words = [f"allreduce:{size // 4}:0:in" for size in SHORT]
        words += [f"all_gather:{ranks * size // 4}:0:out" for size in MOVED]
        words += [f"broadcast:{size // 4}:0:in" for size in MOVED]
        return words + ([f"allreduce:{size // 4}:0:in" for size in LONG] if transport == "shared_memory" else [])
    words = [f"allreduce:{size // 4}:0:in" for size in MESSAGES]
    return words + ([f"all_gather:{size // 4}:0:out" for size in MESSAGES] if transport == "mpi" else [])


def started(transport, words, asked):
    """Runs the ranks; whether all ended well. Wrong results are told by their file."""
    peer = MPIS[asked.mpi]
    if transport == "threads":
        own = {"RANK": "0", "WORLD_SIZE": str(asked.ranks)}
        return peers.all_end_well([subprocess.Popen(words, env={**os.environ, **own})])
    if transport == "shared_memory":
        return peers.run_ranks(WITHOUT_MPI, asked.build, asked.ranks, words)
    if asked.launcher:
        return peers.all_end_well([subprocess.Popen(asked.launcher + words + ["--hosts", "several"],
                                                    env=peer.surroundings(asked.build))])
    return peers.run_ranks(peer, asked.build, asked.ranks, words)


def measured(transport, asked):
    """What the ranks wrote, and why it is not to be trusted."""
    target = "tune_memory" if transport in OVER_MEMORY else "tune_messages"
    peer = WITHOUT_MPI if transport in OVER_MEMORY else MPIS[asked.mpi]
    folder = asked.programs or peers.built_target(peer, asked.build, target, asked.flags) / "benchmarks" / "tune"
    program = str(folder.resolve() / target)
    load = judge.Load()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "samples"
        words = [program, "--out", str(out), "--transport", transport, "--seconds", str(asked.seconds),
                 "--most", "5000"]
        for cell in cells(transport, asked.ranks):
            words += ["--cell", cell]
        load.resume()
        if not started(transport, words, asked):
            raise peers.Missing(f"{transport}: a rank ended with an error")
        load.pause()
        head, *lines = peers.samples(out, transport)
        if asked.samples:
            with asked.samples.open("a", encoding="utf-8") as file:
                file.write(out.read_text(encoding="utf-8"))
    if head["ranks"] < 2:
        raise peers.Missing(f"{transport}: a rank was alone; start two or more, by the launcher of the MPI that they are "
                            "built with")
    run = {**head, "cells": [line for line in lines if line["contenders"]]}
    states = judge.judged(run, run["ranks"] > os.cpu_count())
    return run, [*states.doubts, *load.doubts()]


def curves_of(run, collective):
    """The median of each way by size, in the state of the machine that most cells were seen in."""
    chosen = judge.most_seen(run)
    found = {}
    for cell in run["cells"]:
        if cell["collective"] != collective:
            continue
        for each in cell["contenders"]:
            figures = each["states"][chosen] or each["all"]
            if figures:
                found.setdefault(each["name"], {})[cell["bytes"]] = 1e-6 * figures["median_us"]
    return found


def moves_of(run):
    """For both collectives that only move, by the bytes that a rank hands out: geometric means of their medians."""
    gathers, broadcasts = curves_of(run, "all_gather"), curves_of(run, "broadcast")
    return {name: {size: math.sqrt(gathers[name][size * run["ranks"]] * seconds)
                   for size, seconds in broadcasts[name].items() if size * run["ranks"] in gathers[name]}
            for name in broadcasts}


def limits_of_memory(run):
    """The limits of a transport of memory, and the tables that they are drawn from."""
    folds, moves = curves_of(run, "allreduce"), moves_of(run)
    found = dict(LIMITS)
    offered = "one_shot of mapped" if "one_shot of mapped" in folds else "one_shot"
    found["one_shot"] = thresholds.last_below(folds["one_shot"], folds["staged"], LIMITS["one_shot"])
    otherwise = {size: folds[offered if size <= found["one_shot"] else "staged"][size] for size in folds[offered]}
    found["mapped"] = thresholds.first_above(otherwise, folds["mapped"], LIMITS["mapped"])
    found["mapped_move"] = thresholds.first_above(moves["staged"], moves["mapped"], LIMITS["mapped_move"])
    if 5 < run["ranks"] <= os.cpu_count():  # there direct_limits::one_shot_among is what was measured
        found["one_shot"] = found["one_shot"] * (run["ranks"] - 1) // 4
    segments = {name: curve for name, curve in folds.items() if name.isdigit()}
    tables = [("allreduce", {name: folds[name] for name in folds if not name.isdigit()}),
              ("all-gather and broadcast of so many bytes from a rank", {name: moves[name] for name in ("staged", "mapped")})]
    if segments:
        found["segment"] = int(thresholds.best_of(segments, str(LIMITS["segment"])))
        tables.append(("allreduce, staged in segments of so many bytes", segments))
    return found, tables


def processor():
    """The model of this machine's processor, as the system names it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith(("model name", "CPU part"))]
    return names[0] if names else platform.machine()


def lines_for(transport, run):
    """The C++ of one transport."""
    if transport in OVER_MEMORY:
        yield from header.memory(transport, *limits_of_memory(run))
        return
    folds, moves = curves_of(run, "allreduce"), curves_of(run, "all_gather")
    if transport == "mpi":
        reduces, moved = folds.pop("link reduces"), moves["link moves"]
        yield from header.table("the link: all-gather and allreduce by direct, calls not compared",
                                {"all-gather": moved, "allreduce": reduces})
        yield from header.link(transport, thresholds.link_of(moved, reduces, run["ranks"]))
        yield ""
        pair = thresholds.pair_of(folds, ["recursive_doubling", "direct"], ["recursive_halving", "ring", "direct"], 8192)
    else:
        pair = thresholds.pair_of(folds, ["recursive_doubling", "hierarchical<direct, recursive_doubling>"],
                                  ["hierarchical<direct, recursive_halving>",
                                   "hierarchical<direct, recursive_doubling>"], 16384)
    yield from header.table("allreduce", folds)
    yield from header.selection(transport, *pair)


def tuned(asked):
    """What to end with, and the lines to print: a header, or what stands in its place."""
    runs, refused, wrong = {}, [], False
    for transport in asked.transport:
        print(f"# {transport}: {len(cells(transport, asked.ranks))} cells", file=sys.stderr, flush=True)
        run, doubts = measured(transport, asked)
        runs[transport] = run
        refused += [f"{transport}: {doubt}" for doubt in doubts]
        wrong = wrong or any(each["wrong"] for cell in run["cells"] for each in cell["contenders"])
    if wrong:
        refused.insert(0, "a result was wrong")
    for doubt in refused:
        print(f"# NOT TO BE TRUSTED: {doubt}", file=sys.stderr)
    if wrong or (refused and not asked.anyway):
        return 1 if wrong else 3, header.refusal(refused)
    first = next(iter(runs.values()))
    machine = {**first, "processor": processor(), "cores": os.cpu_count(), "flags": asked.flags, "date": time.strftime("%Y-%m-%d"),
               "command": shlex.join(["python3", "benchmarks/tune", *sys.argv[1:]])}
    lines = [*header.opening(machine, asked.transport), *(f"// NOT TO BE TRUSTED: {doubt}" for doubt in refused)]
    for transport, run in runs.items():
        lines += ["", *lines_for(transport, run)]
    return 0, lines


def main():
    """Prints all at the end: a part of a header, or nothing, would compile and tune nothing."""
    peers.exit_when_ended()
    try:
        status, lines = tuned(arguments())
    except SystemExit as ended:  # argparse has said why
        if ended.code:
            print("\n".join(header.refusal([f"ended early, with {ended.code}"])))
        raise
    except (peers.Missing, OSError) as failure:
        print(f"# {failure}", file=sys.stderr)
        status, lines = 2, header.refusal([str(failure)])
    except KeyboardInterrupt:
        status, lines = 128 + signal.SIGINT, header.refusal(["interrupted"])
    except BaseException as failure:  # a mistake of this program's
        traceback.print_exc()
        status, lines = 2, header.refusal([repr(failure)])
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
