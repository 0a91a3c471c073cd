#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws bandwidth and ratio over size, from what benchmarks/compare writes with --json: a line a peer and kind of buffer."""
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
    wanted = {"collective": asked.collective, "element": asked.element, "op": asked.op, "place": asked.place, "offset": 0}
    return sorted((cell for cell in run["cells"] if all(cell[key] == value for key, value in wanted.items())),
                  key=lambda cell: cell["bytes"])


def points(cells, state, value_of):
    """(bytes, value) of the cells that have one."""
    found = [(cell["bytes"], value_of(report.by_name(cell, state))) for cell in cells]
    return [each for each in found if each[1] is not None]


def named(found, ending):
    """Of the figures of a cell those of the contender whose name ends so."""
    return next((each for name, each in found.items() if name.endswith(ending) and not name.startswith("floor")), None)


def draw(pyplot, runs, asked):
    figure, (bandwidth, ratio) = pyplot.subplots(1, 2, figsize=(14, 6), layout="constrained")
    for number, run in enumerate(runs):
        for state, barrier in enumerate(run["state_barriers_ns"]):
            cells, color = cells_of(run, asked), f"C{number % 10}"
            suffix = f", barrier {barrier:.0f} ns" if len(run["state_barriers_ns"]) > 1 else ""
            strength = 1 if state == 0 else 0.4

            def plot(axes, name, style, shade, value_of):
                line = points(cells, state, value_of)
                if line:
                    axes.plot(*zip(*line), style, marker=".", color=shade, alpha=strength, label=name + suffix)

            def speed(ending):
                def of(found):
                    each = named(found, ending)
                    return each and 1e-3 * found_bytes[id(found)] / each["median_us"]
                return of

            found_bytes = {}

            def with_bytes(value):
                def of_cell(cell):
                    found = report.by_name(cell, state)
                    found_bytes[id(found)] = cell["bytes"]
                    return value(found)
                return of_cell

            def plot_cells(axes, name, style, shade, value):
                of_cell = with_bytes(value)
                line = [(cell["bytes"], of_cell(cell)) for cell in cells]
                line = [each for each in line if each[1]]
                if line:
                    axes.plot(*zip(*line), style, marker=".", color=shade, alpha=strength, label=name + suffix)

            plot_cells(bandwidth, run["peer"], ":", color, speed("peer"))
            for kind, style in MARKS.items():
                plot_cells(bandwidth, f"ddl, {kind} buffers, beside {run['name']}", style, color, speed(kind))
                plot(ratio, f"{run['peer']} / ddl, {kind} buffers", style, color,
                     lambda found, kind=kind: report.ratio(found.get("peer"), named(found, kind)))
    bandwidth.set(xlabel="bytes", ylabel="GB/s: bytes of the vector over the median time", yscale="log")
    ratio.set(xlabel="bytes", ylabel="the peer's median time over ours", yscale="log")
    ratio.axhline(1, color="black", linewidth=0.8)
    for axes in (bandwidth, ratio):
        axes.set_xscale("log", base=2)
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
