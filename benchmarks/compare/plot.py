#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws bandwidth and ratio over size, from what benchmarks/compare writes with --json: peers and buffers as lines."""
import argparse
import json
import pathlib
import sys

import report

MARKS = {"private": "--", "mapped": "-"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="JSON files; their runs are drawn together")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("compare.png"),
                        help="the picture, its kind by its ending: .png, .svg, .pdf (%(default)s)")
    parser.add_argument("--collective", default="allreduce")
    parser.add_argument("--element", default="float")
    parser.add_argument("--op", default="sum")
    parser.add_argument("--place", default="in")
    return parser.parse_args()


def runs_of(paths):
    for path in paths:
        try:
            whole = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as failure:
            sys.exit(f"plot.py: {path}: {failure}")
        if not isinstance(whole, dict) or whole.get("program") != "compare":
            sys.exit(f"plot.py: {path}: this is not what benchmarks/compare writes with --json")
        yield from whole["runs"]


def cells_of(run, asked):
    wanted = {"collective": asked.collective, "element": asked.element, "op": asked.op, "place": asked.place,
              "offset": 0}
    found = [cell for cell in run["cells"] if all(cell[key] == value for key, value in wanted.items())]
    return sorted(found, key=lambda cell: cell["bytes"])


def named(found, ending):
    """Of the figures of a cell those of the contender whose name ends so."""
    return next((each for name, each in found.items() if name.endswith(ending) and not name.startswith("floor")), None)


def speed(cell, found, ending):
    """GB/s: the bytes of the vector over the median time."""
    each = named(found, ending)
    return 1e-3 * cell["bytes"] / each["median_us"] if each else None


def lines_of(run, asked):
    """(which picture, name, style, strength, points) of all lines of a run."""
    states = run["state_barriers_ns"]
    for state, barrier in enumerate(states):
        cells = [(cell, report.by_name(cell, state)) for cell in cells_of(run, asked)]
        strength = 1 - 0.6 * state  # the slow state is pale
        suffix = f", barrier {barrier:.0f} ns" if len(states) > 1 else ""

        def line(picture, name, style, value):
            points = [(cell["bytes"], value(cell, found)) for cell, found in cells]
            return picture, name + suffix, style, strength, [each for each in points if each[1]]

        yield line("bandwidth", run["peer"], ":", lambda cell, found: speed(cell, found, "peer"))
        for kind, style in MARKS.items():
            yield line("bandwidth", f"ddl, {kind} buffers, beside {run['name']}", style,
                       lambda cell, found, kind=kind: speed(cell, found, kind))
            yield line("ratio", f"{run['peer']}, {kind} buffers", style,
                       lambda cell, found, kind=kind: report.ratio(found.get("peer"), named(found, kind)))


def draw(pyplot, runs, asked):
    figure, (bandwidth, ratio) = pyplot.subplots(1, 2, figsize=(14, 6), layout="constrained")
    pictures = {"bandwidth": bandwidth, "ratio": ratio}
    for number, run in enumerate(runs):
        for picture, name, style, strength, points in lines_of(run, asked):
            if points:
                pictures[picture].plot(*zip(*points), style, marker=".", color=f"C{number % 10}", alpha=strength,
                                       label=name)
    bandwidth.set(xlabel="bytes", ylabel="GB/s: bytes of the vector over the median time")
    ratio.set(xlabel="bytes", ylabel="the peer's median time over that of ddl")
    ratio.axhline(1, color="black", linewidth=0.8)
    for axes in (bandwidth, ratio):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize="x-small")
    figure.suptitle(f"{asked.collective} of {asked.element}, {asked.op}, {asked.place} place; {runs[0]['ranks']} ranks")
    return figure


def main():
    asked = arguments()
    runs = list(runs_of(asked.files))
    if not any(cells_of(run, asked) for run in runs):
        sys.exit("plot.py: no run has such cells; see --collective, --element, --op and --place")
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py: drawing needs the Python package matplotlib; install it: pip install matplotlib, "
                 "or on Debian apt-get install python3-matplotlib")
    matplotlib.use("agg")  # draws to files, needs no screen
    from matplotlib import pyplot
    try:
        draw(pyplot, runs, asked).savefig(asked.output, dpi=150)
    except (OSError, ValueError) as failure:
        sys.exit(f"plot.py: {asked.output}: {failure}")


main()
