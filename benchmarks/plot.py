#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws time and bus bandwidth over size, from what the benchmarks write with --json.

A line for each file, contender and offset, whole for out of place and dashed for in place; the band around it reaches
from the quickest to the slowest call.
"""
import argparse
import json
import pathlib
import sys

PLACES = {"out_of_place": ("out of place", "-"), "in_place": ("in place", "--")}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="JSON files, one a run")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("allreduce.png"),
                        help="the picture, its kind by its ending: .png, .svg, .pdf (%(default)s)")
    parser.add_argument("--title", help="above the picture")
    return parser.parse_args()


def run_of(path):
    """The run that `path` holds, or the end of the program with a sentence."""
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        sys.exit(f"plot.py: {path}: {failure}")
    if not isinstance(run, dict) or not {"program", "settings", "rows"} <= run.keys():
        sys.exit(f"plot.py: {path}: this is not what a benchmark writes with --json")
    return run


def lines_of(run):
    """(name, style, points) of each line: points are those figures of the rows that share contender, offset and place."""
    lines = {}
    for row in run["rows"]:
        for place, (words, style) in PLACES.items():
            if row[place] is not None:
                lines.setdefault((row["by"], row["offset"], words, style), []).append((row["bytes"], row[place]))
    settings = run["settings"]
    for (by, offset, words, style), points in lines.items():
        shift = f", {offset} off the page" if offset else ""
        how = f"{settings['transport']}, {settings['schedule']}, " if by == "ddl" else ""
        yield f"{by} ({how}{settings['ranks']} ranks{shift}), {words}", style, sorted(points, key=lambda point: point[0])


def draw(pyplot, runs, title):
    figure, (time, bandwidth) = pyplot.subplots(1, 2, figsize=(14, 6), layout="constrained")
    colors = {}
    for path, run in runs:
        prefix = f"{path.stem}: " if len(runs) > 1 else ""
        for name, style, points in lines_of(run):
            whose = prefix + name.rpartition(", ")[0]  # one colour in place and out of place
            color = colors.setdefault(whose, f"C{len(colors) % 10}")
            sizes = [size for size, _ in points]

            def figures(key):
                return [float("nan") if found[key] is None else found[key] for _, found in points]

            time.plot(sizes, figures("median_us"), style, color=color, label=prefix + name)
            time.fill_between(sizes, figures("min_us"), figures("max_us"), color=color, alpha=0.1, linewidth=0)
            bandwidth.plot(sizes, figures("busbw_gb_s"), style, color=color, label=prefix + name)
    time.set(yscale="log", xlabel="bytes", ylabel="µs: median, from the quickest call to the slowest")
    bandwidth.set(xlabel="bytes", ylabel="GB/s: bus bandwidth at the median")
    for axes in (time, bandwidth):
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
    figure.legend(*time.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small")
    if title:
        figure.suptitle(title)
    return figure


def main():
    asked = arguments()
    runs = [(path, run_of(path)) for path in asked.files]
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py: drawing needs the Python package matplotlib; install it: pip install matplotlib, "
                 "or on Debian apt-get install python3-matplotlib")
    matplotlib.use("agg")  # draws to files, needs no screen
    from matplotlib import pyplot
    try:
        draw(pyplot, runs, asked.title).savefig(asked.output, dpi=150)
    except (OSError, ValueError) as failure:
        sys.exit(f"plot.py: {asked.output}: {failure}")


main()
