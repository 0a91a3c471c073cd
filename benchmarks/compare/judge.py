# SPDX-License-Identifier: Apache-2.0
"""What samples say: the machine's states told apart by the barrier probe, and whether the figures can be trusted."""
import dataclasses
import math
import os
import resource
import statistics

APART = 1.6          # states are this far apart at least, as a ratio of their medians
BETWEEN = 0.1        # ... and at most this fraction of the probes lies in the middle third of the gap
RARE = 0.03          # a state is met this often at least
OUTLYING = 10.0      # a probe so many times the lower quartile met something else: a rank was off its core
MOST_OUTLYING = 0.1
MOST_FOREIGN = 0.05  # of the cores' time used by others
MOST_STOLEN = 0.02   # of it taken by the host


@dataclasses.dataclass
class States:
    """The probes, seconds of a barrier, in one state or two, divided at `limit`. Above `most` they are outliers."""
    medians: list
    most: float = math.inf
    limit: float = math.inf
    outlying: float = 0.0
    doubts: list = dataclasses.field(default_factory=list)

    def of(self, probe):
        """Which state; None for an outlier."""
        return None if probe > self.most else 1 if probe > self.limit else 0


def deviation(values):
    middle = statistics.fmean(values)
    return sum((value - middle) ** 2 for value in values)


def best_cut(logs):
    """Where a sorted list falls into two with the least deviation within both; each holds a state's share at least."""
    rare = max(1, int(len(logs) * RARE))
    cuts = range(rare, len(logs) - rare + 1, max(1, len(logs) // 400))
    return min(cuts, key=lambda cut: deviation(logs[:cut]) + deviation(logs[cut:]), default=None)


def states_of(probes):
    """Two clusters on a logarithmic scale if the probes fall into two, one if they lie close together, else a doubt."""
    probes = sorted(probes)
    most = OUTLYING * probes[len(probes) // 4]
    logs = [math.log(max(probe, 1e-12)) for probe in probes if probe <= most]
    found = States([math.exp(statistics.median(logs))], most, outlying=1 - len(logs) / len(probes))
    if found.outlying > MOST_OUTLYING:
        found.doubts.append(f"{100 * found.outlying:.0f} % of the probes are outliers: ranks were off their cores")
    cut = best_cut(logs)
    low, high = (statistics.median(logs[:cut]), statistics.median(logs[cut:])) if cut else (0, 0)
    if high - low > math.log(APART):
        third = (high - low) / 3
        between = sum(low + third < value < high - third for value in logs) / len(logs)
        if between <= BETWEEN:
            found.limit, found.medians = math.exp((low + high) / 2), [math.exp(low), math.exp(high)]
            return found
    first, last = logs[len(logs) // 20], logs[len(logs) * 19 // 20]
    if last - first > 2 * math.log(APART):
        found.doubts.append(f"barriers took {1e9 * math.exp(first):.0f} to {1e9 * math.exp(last):.0f} ns without "
                            "falling into two states of the machine")
    return found


class Load:
    """What else used the cores while it was not paused; it begins paused."""

    def __init__(self):
        self.own = self.busy = self.idle = self.taken = 0.0
        self.before = None

    @staticmethod
    def reading():
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, idle, waiting, hard, soft, stolen = map(int, file.readline().split()[1:9])
        tick = os.sysconf("SC_CLK_TCK")
        own = sum(used.ru_utime + used.ru_stime for used in
                  (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)))
        return own, (user + nice + system + hard + soft) / tick, (idle + waiting) / tick, stolen / tick

    def resume(self):
        self.before = self.reading()

    def pause(self):
        own, busy, idle, taken = (now - then for now, then in zip(self.reading(), self.before))
        self.own += own
        self.busy += busy
        self.idle += idle
        self.taken += taken

    @property
    def foreign(self):
        return max(self.busy - self.own, 0) / max(self.busy + self.idle + self.taken, 1e-9)

    @property
    def stolen(self):
        return self.taken / max(self.busy + self.idle + self.taken, 1e-9)

    def doubts(self):
        if self.foreign > MOST_FOREIGN:
            yield f"other programs used {100 * self.foreign:.0f} % of the cores; wait until they have ended"
        if self.stolen > MOST_STOLEN:
            yield f"the host took {100 * self.stolen:.1f} % of the cores' time (steal)"


def turns_of(cell):
    """A probe for each turn: the median of those before its calls. A state of the machine outlasts a turn, and what one
    contender leaves behind for the next is no state."""
    return [statistics.median(turn) for turn in zip(*(each["probes"] for each in cell["contenders"]))]


def judged(run, crowded):
    """Puts what its contenders reached in each state in place of the samples of a run. Returns the states."""
    turns = [turns_of(cell) for cell in run["cells"]]
    probes = [probe for cell in turns for probe in cell]
    # ranks that share a core wait for the scheduler in a barrier: it tells nothing of the machine
    states = States([statistics.median(probes)]) if crowded else states_of(probes)
    for cell, cell_turns in zip(run["cells"], turns):
        seen = [states.of(probe) for probe in cell_turns]
        for each in cell["contenders"]:
            times = each.pop("seconds")
            del each["probes"]
            each["all"] = figures(times)
            each["states"] = [figures([time for time, state in zip(times, seen) if state == wanted])
                              for wanted in range(len(states.medians))]
    return states


def most_seen(run):
    """The state of the machine that most cells have been seen in: the one to sum up."""
    seen = [sum(1 for cell in run["cells"] for each in cell["contenders"] if each["states"][state])
            for state in range(len(run["cells"][0]["contenders"][0]["states"]))]
    return seen.index(max(seen))


def figures(times):
    """None if they are too few to say anything."""
    if len(times) < 3:
        return None
    return {"samples": len(times), "min_us": 1e6 * min(times), "median_us": 1e6 * statistics.median(times),
            "max_us": 1e6 * max(times)}
