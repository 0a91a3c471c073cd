# SPDX-License-Identifier: Apache-2.0
"""The tables: a line a cell, and geometric means over the size classes; and the file of all figures."""
import json
import math
import sys

import cells

TARGETS = {
    "private": {"4-256 B": 3, "1-4 KiB": 2, "16-256 KiB": 2, "1-4 MiB": 1.5, "16-256 MiB": 2.5},
    "mapped": {"4-256 B": 3, "1-4 KiB": 4, "16-256 KiB": 10, "1-4 MiB": 5, "16-256 MiB": 5},
}


def size_text(size):
    for unit, shift in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return str(size) if size < 10 << 20 else f"{size / (1 << 20):.1f} Mi"


def by_name(cell, state=None):
    """The figures of each contender in one state of the machine, or in all."""
    return {each["name"]: each["all"] if state is None else each["states"][state] for each in cell["contenders"]}


def ratio(peer, ours):
    return peer["median_us"] / ours["median_us"] if peer and ours else None


def floor_share(found):
    """How near ours, in mapped buffers, comes to the quicker of the floors."""
    medians = {name: figures["median_us"] for name, figures in found.items() if figures}
    floors = [median for name, median in medians.items() if name.startswith("floor")]
    mapped = [median for name, median in medians.items() if is_ours(name) and name.endswith("mapped")]
    return min(floors) / mapped[0] if floors and mapped else None


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def spread_text(found):
    return f"{found['min_us']:10.2f} {found['median_us']:10.2f} {found['max_us']:10.2f}" if found else f"{'-':>32}"


def ratio_text(value):
    return f"{value:.2f}x" if value else "-"


def is_ours(name):
    return name != "peer" and not name.startswith("floor")


def table(run, state):
    """The lines of one peer in one state of the machine."""
    names = [name for name in dict.fromkeys(each["name"] for cell in run["cells"] for each in cell["contenders"])
             if is_ours(name)]
    yield f"{'':51} {'peer':>32}" + "".join(f"   {name:>40}" for name in names) + "   of floor"
    yield (f"{'collective':>15} {'element':>8} {'op':>3} {'in/out':>6} {'bytes':>10} {'offset':>6} "
           f"{'min':>10} {'median':>10} {'max us':>10}" +
           "".join(f"   {'min':>10} {'median':>10} {'max us':>10} {'ratio':>7}" for _ in names) + f"   {'mapped':>8}")
    for cell in run["cells"]:
        found = by_name(cell, state)
        if not any(found.values()):
            continue
        peer = found.get("peer")
        line = (f"{cell['collective']:>15} {cell['element']:>8} {cell['op']:>3} {cell['place']:>6} "
                f"{size_text(cell['bytes']):>10} {cell['offset']:>6} {spread_text(peer)}")
        for name in names:
            line += f"   {spread_text(found.get(name))} {ratio_text(ratio(peer, found.get(name))):>7}"
        share = floor_share(found)
        wrong = sum(each["wrong"] for each in cell["contenders"])
        yield line + (f"   {100 * share:6.0f} %" if share else "") + (f"   {wrong:.0f} WRONG" if wrong else "")


def wrong_cells(run):
    """A line for each cell and contender whose results were not all right, be its figures told or not."""
    for cell in run["cells"]:
        for each in cell["contenders"]:
            if each["wrong"]:
                yield (f"{each['wrong']:.0f} elements of {each['name']}: {cell['collective']} of {size_text(cell['bytes'])} "
                       f"bytes, {cell['element']}, {cell['op']}, {cell['place']}, offset {cell['offset']}")


def ratios(run, kind, state):
    """(cell, ratio) of each cell in which ours with buffers of that kind met the peer."""
    for cell in run["cells"]:
        found = by_name(cell, state)
        ours = next((each for name, each in found.items() if is_ours(name) and name.endswith(kind)), None)
        value = ratio(found.get("peer"), ours)
        if value is not None:
            yield cell, value


def key_of(cell):
    return tuple(cell[name] for name in ("collective", "element", "op", "place", "bytes", "offset"))


def line_of(name, values):
    """Means of (bytes, ratio) in each class and over all, and the least."""
    text = f"{name:>16}"
    for _, low, high in cells.CLASSES:
        text += f"{ratio_text(geometric_mean([value for size, value in values if low <= size <= high])):>12}"
    all_values = [value for _, value in values]
    return text + f"{ratio_text(geometric_mean(all_values)):>12}{ratio_text(min(all_values)):>12}"


def model_summary(model, runs, state_of):
    for run in runs:
        for cell in run["cells"]:
            found = by_name(cell, state_of(run))
            one_by_one = next((each for name, each in found.items() if name.endswith("one by one")), None)
            for kind in TARGETS if cell["collective"] == model else ():
                ours = next((each for name, each in found.items() if name.endswith(kind)), None)
                if ours:
                    yield (f"allreduce_n of {model}, {kind} buffers: a call of {run['name']} for each tensor takes "
                           f"{ratio_text(ratio(found.get('peer'), ours))} its time (target 3x), "
                           f"a call of ours {ratio_text(ratio(one_by_one, ours))} (2x)")


def summary(runs, state_of):
    """What the targets ask: means over size classes against each peer, and against the better of all in each cell."""
    head = "".join(f"{name:>12}" for name, _, _ in cells.CLASSES) + f"{'all':>12}{'least':>12}"
    for group in dict.fromkeys(cell["collective"] for run in runs for cell in run["cells"]):
        if group in cells.MODELS:
            yield from model_summary(group, runs, state_of)
            continue
        for kind, targets in TARGETS.items():
            lines, best = [], {}
            for run in runs:
                values = []
                for cell, value in ratios(run, kind, state_of(run)):
                    if cell["collective"] == group:
                        values.append((cell["bytes"], value))
                        best[key_of(cell)] = min(best.get(key_of(cell), value), value)
                if values:
                    lines.append((run["name"], values))
            if not lines:
                continue
            if len(lines) > 1:
                lines.append(("the best", [(key[4], value) for key, value in best.items()]))
            yield f"{group}, {kind} buffers: the peer's time over ours, geometric means\n{'':16}{head}"
            yield from (line_of(name, values) for name, values in lines)
            if group == "allreduce":
                yield f"{'target':>16}" + "".join(f"{f'{targets[name]:g}x':>12}" for name, _, _ in cells.CLASSES)


def written(file, figures):
    """Whether the file has taken the figures, as JSON. If not, says why: the tables stand."""
    try:
        file.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    except OSError as failure:
        print(f"# cannot write '{file}': {failure.strerror}; the figures are in the tables alone", file=sys.stderr)
        return False
    return True
