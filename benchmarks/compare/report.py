# SPDX-License-Identifier: Apache-2.0
"""The tables: a line a cell, and the geometric means of the size classes."""
import math

CLASSES = [("4-256 B", 4, 256), ("512 B", 512, 512), ("1-4 KiB", 1 << 10, 4 << 10), ("8 KiB", 8 << 10, 8 << 10),
           ("16-256 KiB", 16 << 10, 256 << 10), ("512 KiB", 512 << 10, 512 << 10), ("1-4 MiB", 1 << 20, 4 << 20),
           ("8 MiB", 8 << 20, 8 << 20), ("16-256 MiB", 16 << 20, 256 << 20)]
TARGETS = {"private": {"4-256 B": 3, "1-4 KiB": 2, "16-256 KiB": 2, "1-4 MiB": 1.5, "16-256 MiB": 2.5},
           "mapped": {"4-256 B": 3, "1-4 KiB": 4, "16-256 KiB": 10, "1-4 MiB": 5, "16-256 MiB": 5}}


def size_text(size):
    for unit, shift in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if size >= 1 << shift:
            value = size / (1 << shift)
            return f"{value:g} {unit}" if value == int(value) else f"{value:.2f} {unit}"
    return f"{size}"


def figures_of(each, state):
    return each["all"] if state is None else each["states"][state]


def by_name(cell, state):
    return {each["name"]: figures_of(each, state) for each in cell["contenders"]}


def ratio(peer, ours):
    return peer["median_us"] / ours["median_us"] if peer and ours else None


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def spread_text(found):
    return f"{found['min_us']:10.2f} {found['median_us']:10.2f} {found['max_us']:10.2f}" if found else f"{'-':>32}"


def ratio_text(value):
    return f"{value:6.2f}x" if value else f"{'-':>7}"


def table(run, state):
    """The lines of one peer in one state of the machine."""
    names = []
    for cell in run["cells"]:
        names += [each["name"] for each in cell["contenders"] if each["name"] not in names]
    ours = [name for name in names if name not in ("floor", "peer")]
    yield f"{'':34} {'peer':>32}" + "".join(f"   {name:>40}" for name in ours) + "   of floor"
    yield (f"{'collective':>14} {'place':>5} {'bytes':>8} {'off':>4} {'min':>10} {'median':>10} {'max us':>10}" +
           "".join(f"   {'min':>10} {'median':>10} {'max us':>10} {'ratio':>7}" for _ in ours) + f"   {'mapped':>8}")
    for cell in run["cells"]:
        found = by_name(cell, state)
        if not any(found.values()):
            continue
        peer = found.get("peer")
        line = f"{cell['collective']:>14} {cell['place']:>5} {size_text(cell['bytes']):>8} {cell['offset']:>4} {spread_text(peer)}"
        for name in ours:
            line += f"   {spread_text(found.get(name))} {ratio_text(ratio(peer, found.get(name)))}"
        mapped = next((found.get(name) for name in ours if name.endswith("mapped")), None)
        share = ratio(found.get("floor"), mapped)
        wrong = sum(each["wrong"] for each in cell["contenders"])
        yield line + (f"   {100 * share:6.0f} %" if share else "") + (f"   {wrong:.0f} WRONG" if wrong else "")


def summary(runs, state_of):
    """Geometric means of the ratio in each size class, for each peer and against the better of all: what targets ask."""
    for kind, targets in TARGETS.items():
        rows = {}
        best = {}
        for run in runs:
            for cell in run["cells"]:
                found = by_name(cell, state_of(run))
                ours = next((each for name, each in found.items() if name.endswith(kind)), None)
                value = ratio(found.get("peer"), ours)
                if value is None or cell["collective"] != "allreduce":
                    continue
                rows.setdefault(run["name"], {}).setdefault(cell["bytes"], []).append(value)
                key = (cell["bytes"], cell["place"], cell["offset"])
                best[key] = min(best.get(key, value), value)
        if not rows:
            continue
        lines = [(name, [(size, value) for size, values in sizes.items() for value in values]) for name, sizes in rows.items()]
        if len(lines) > 1:
            lines.append(("best of them", [(key[0], value) for key, value in best.items()]))
        yield f"allreduce, {kind} buffers: ratio, geometric mean"
        yield f"{'':>20}" + "".join(f"{name:>12}" for name in targets) + f"{'all':>12}{'least':>12}"
        for name, values in lines:
            text = f"{name:>20}"
            for _, low, high in (each for each in CLASSES if each[0] in targets):
                mean = geometric_mean([value for size, value in values if low <= size <= high])
                text += f"{ratio_text(mean):>12}"
            yield text + f"{ratio_text(geometric_mean([v for _, v in values])):>12}{ratio_text(min(v for _, v in values)):>12}"
        yield f"{'target':>20}" + "".join(f"{f'{value:g}x':>12}" for value in targets.values())
