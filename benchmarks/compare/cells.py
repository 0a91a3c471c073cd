# SPDX-License-Identifier: Apache-2.0
"""Which cells a run has: what each collective is asked for, by element and op."""
import argparse

ELEMENT_BYTES = {"float": 4, "double": 8, "int32": 4, "bfloat16": 2}
OPS = ["sum", "max"]
COLLECTIVES = ["allreduce", "allreduce_async", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "barrier"]
MODELS = ["resnet50", "gpt2"]
PLACES = {"in": ["in"], "out": ["out"], "both": ["in", "out"]}
LONGEST = 28  # 256 MiB
TOO_LONG = 1 << 33  # 2^31 float, and MPI counts in int
CLASSES = [("4-256 B", 4, 256), ("1-4 KiB", 1 << 10, 4 << 10), ("16-256 KiB", 16 << 10, 256 << 10),
           ("1-4 MiB", 1 << 20, 4 << 20), ("16-256 MiB", 16 << 20, 256 << 20)]


class Wrong(argparse.ArgumentTypeError):
    """The command line asks for what cannot be."""


def size_of(words):
    shift = {"K": 10, "M": 20, "G": 30}.get(words[-1:].upper(), 0)
    digits = words[:-1] if shift else words
    if not digits.isdecimal():
        raise Wrong(f"'{words}' is no size; write 512, 4K or 1M")
    size = int(digits) << shift
    if size >= TOO_LONG:
        raise Wrong(f"'{words}' is more than MPI counts to; write less than 8G")
    return size


def sizes_of(words):
    """What --sizes names, each once."""
    return list(dict.fromkeys(size_of(each) for each in words.split(",")))


def sizes(first=2, last=LONGEST, step=1):
    return [1 << shift for shift in range(first, last + 1, step)]


def least_count(collective, ranks):
    """Elements of the shortest vector: one, or one for each rank."""
    return 1 if collective in ("allreduce", "allreduce_async", "broadcast", "reduce") else ranks


def places_of(collective, wanted=None):
    """Where its results may lie; of those that make a difference the `wanted` ones. None: the usual one."""
    if collective in ("barrier", "broadcast", *MODELS):
        return ["in"]
    if collective in ("reduce_scatter", "all_gather"):
        return ["out"]  # in place means other buffers to every library
    return wanted or (["out"] if collective == "all_to_all" else ["in"])


def rows(collective, byte_sizes, places, element, ranks, offsets=(0,), odd=False):
    """The program's words for a collective: `collective:elements:offset:place`. `places` as `places_of` has it."""
    if collective == "barrier":
        return ["barrier:0:0:in"]
    if collective in MODELS:
        return [f"{collective}:0:0:in"]
    places = places_of(collective, places)
    words = []
    for size in byte_sizes:
        count = size // ELEMENT_BYTES[element] + (1 if odd else 0)
        if collective == "all_to_all":
            count -= count % ranks
        if count >= least_count(collective, ranks):
            words += [f"{collective}:{count}:{offset}:{place}" for offset in offsets for place in places]
    return words


def require_sense(asked):
    """What would be left out in silence is refused."""
    pairs = [(each, asked.element) for each in asked.collective]
    if asked.whole:
        pairs = [(each, "float") for each in COLLECTIVES] + [("allreduce", each) for each in ELEMENT_BYTES]
    for collective, element in pairs:
        places = places_of(collective, PLACES["both"])
        if asked.place and not set(PLACES[asked.place]) <= set(places):
            raise Wrong(f"--place {asked.place}: {collective} is measured {'in' if places == ['in'] else 'out of'} place only")
        least = ELEMENT_BYTES[element] * least_count(collective, asked.ranks)
        if asked.sizes and collective not in ("barrier", *MODELS) and min(asked.sizes) < least:
            raise Wrong(f"--sizes {min(asked.sizes)}: {collective} of {element} takes {least} bytes or more on "
                        f"{asked.ranks} ranks")


def chosen(asked):
    """What the options name, as (element, op, words)."""
    byte_sizes = asked.sizes or sizes(step=2 if asked.quick else 1)
    require_sense(asked)
    if asked.whole:
        yield from whole(asked.ranks, byte_sizes, byte_sizes if asked.sizes else byte_sizes[::2])
        return
    offsets = [0, 1] if asked.unaligned else [0]
    places = PLACES[asked.place] if asked.place else None
    words = []
    for collective in asked.collective:
        words += rows(collective, byte_sizes, places, asked.element, asked.ranks, offsets)
        if asked.odd and collective not in ("barrier", *MODELS):
            words += rows(collective, byte_sizes, places, asked.element, asked.ranks, offsets, odd=True)
    yield asked.element, asked.op, list(dict.fromkeys(words))  # one element more may be none: blocks stay equal


def whole(ranks, many, few):
    """Everything, the default in many sizes and the rest in few: a quarter of an hour a peer."""
    both = PLACES["both"]
    yield "float", "sum", (
        rows("allreduce", many, both, "float", ranks) + rows("allreduce", few, ["in"], "float", ranks, [1]) +
        rows("allreduce", few, ["in"], "float", ranks, odd=True) +
        [word for each in COLLECTIVES[1:] for word in rows(each, few, ["out"], "float", ranks)] +
        rows("all_to_all", few, ["in"], "float", ranks) +
        [word for each in MODELS for word in rows(each, [], [], "float", ranks)])
    for element in ELEMENT_BYTES:
        for op in OPS:
            if (element, op) != ("float", "sum"):
                yield element, op, rows("allreduce", few, both, element, ranks)
