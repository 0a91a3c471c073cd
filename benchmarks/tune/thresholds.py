# SPDX-License-Identifier: Apache-2.0
"""Where one way becomes quicker than another: drawn from all sizes together, never from one cell.

A curve is a dict: bytes -> median seconds."""
import math
import statistics

GAIN = 0.02  # what a limit must win over the one it replaces, as a mean over the sizes that it moves


def smoothed(values):
    """Medians of three neighbours: one noisy cell moves nothing."""
    if len(values) < 3:
        return list(values)
    inner = [statistics.median(values[i - 1:i + 2]) for i in range(1, len(values) - 1)]
    return [values[0], *inner, values[-1]]


def gains(below, above):
    """For the sizes that both curves have: the logarithm of how much longer `below` takes than `above`."""
    sizes = sorted(below.keys() & above.keys())
    return sizes, smoothed([math.log(below[size] / above[size]) for size in sizes])


def last_below(below, above, before):
    """The largest size for which `below` is still to be taken, 0 for none, such that all sizes together take least.

    `before` is the limit that holds now: it stays unless another wins GAIN on average over the sizes between the two.
    """
    sizes, logs = gains(below, above)
    candidates = [0, *sizes]

    def total(limit):
        return sum(log for size, log in zip(sizes, logs) if size <= limit)

    best = min(candidates, key=lambda limit: (round(total(limit), 6), abs(limit - before)))
    held = max(each for each in candidates if each <= before)
    moved = [size for size in sizes if min(best, held) < size <= max(best, held)]
    if not moved or total(held) - total(best) < GAIN * len(moved):
        return before
    return best


def first_above(below, above, before):
    """The smallest size from which on `above` is to be taken; one past the last if never."""
    sizes, _ = gains(below, above)
    if not sizes:
        return before
    held = max((size for size in sizes if size < before), default=0)
    last = last_below(below, above, held)
    if last == held:
        return before
    later = [size for size in sizes if size > last]
    return later[0] if later else 2 * sizes[-1]


def best_of(curves, before):
    """The name of the curve with the least geometric mean; `before` unless it wins GAIN and is nowhere much slower."""
    sizes = sorted(set.intersection(*(set(curve) for curve in curves.values())))
    if not sizes or before not in curves:
        return before

    def logs(name):
        return [math.log(curves[name][size] / curves[before][size]) for size in sizes]

    best = min(curves, key=lambda name: statistics.fmean(logs(name)))
    if statistics.fmean(logs(best)) > -GAIN or max(logs(best)) > 2 * GAIN:
        return before
    return best


def pair_of(curves, quick, broad, before):
    """The two schedules and the limit between them that take least over all sizes, as (quick, limit, broad). The limit is
    infinite if the quick one is best up to the last size: nothing is known of the other beyond.

    `quick` and `broad` name the candidates, in order of preference; each pair is judged at its own best limit.
    """
    def seconds(pair):
        first, last, limit = pair
        return sum(math.log(curves[first][size] if size <= limit else curves[last][size])
                   for size in curves[first].keys() & curves[last].keys())

    pairs = [(first, last, last_below(curves[first], curves[last], before))
             for first in quick for last in broad if first != last and first in curves and last in curves]
    best = pairs[0]
    for pair in pairs[1:]:
        if seconds(pair) < seconds(best) - GAIN * len(curves[pair[0]]):
            best = pair
    quick, broad, limit = best
    return quick, math.inf if limit == max(curves[quick]) else limit, broad


def link_of(moves, reduces, ranks):
    """message, byte and combined of a link, in seconds, from an all-gather and an allreduce by `direct`.

    Of n bytes a rank sends n(p-1)/p in p-1 messages, in an allreduce twice, and combines them once.
    """
    share = (ranks - 1) / ranks
    short = sorted(moves)[:3]
    message = statistics.median(moves[size] for size in short) / (ranks - 1)
    long = [size for size in moves if size >= 1 << 18] or sorted(moves)[-1:]
    byte = statistics.median(max(moves[size] - message * (ranks - 1), 0) / (size * share) for size in long)
    both = [size for size in long if size in reduces] or long
    combined = statistics.median((reduces.get(size, 0) - 2 * moves[size]) / (size * share) for size in both)
    return message, max(byte, 1e-13), max(combined, 1e-13)
