# SPDX-License-Identifier: Apache-2.0
"""What samples say: the machine's states told apart by the barrier probe, and whether the figures can be trusted."""
import dataclasses
import math
import os
import resource
import statistics

APART = 1.8      # states are this far apart at least, as a ratio of their medians
BETWEEN = 0.1    # ... and at most this fraction of the probes lies in the middle of the gap
OUTLYING = 4.0   # a probe so many times its state's median met something else than the machine's state
MOST_OUTLYING = 0.1
MOST_FOREIGN = 0.05  # of the cores' time used by others
MOST_STOLEN = 0.02   # of it taken by the host


@dataclasses.dataclass
class States:
    """Probes (ns of a barrier) in one state or two. `limit` divides them; None: there is one."""
    limit: float | None
    medians: list
    outlying: float
    doubt: str = ""

    def of(self, probe):
        return 0 if self.limit is None or probe < self.limit else 1


def deviation(values):
    middle = statistics.fmean(values)
    return sum((value - middle) ** 2 for value in values)


def states_of(probes):
    """Two clusters on a logarithmic scale, if the probes fall into two; one cluster if they are close together."""
    logs = sorted(math.log(max(probe, 1e-12)) for probe in probes)
    total = deviation(logs)
    counts = max(1, len(logs) // 400)
    best, at = total, None
    # outliers are no state: each side holds 3 % at least
    for cut in range(max(1, len(logs) * 3 // 100), len(logs) - max(1, len(logs) * 3 // 100), counts):
        spread = deviation(logs[:cut]) + deviation(logs[cut:])
        if spread < best:
            best, at = spread, cut
    whole = math.exp(statistics.median(logs))

    def outliers(limit, medians):
        values = [math.exp(value) for value in logs]
        far = sum(value > OUTLYING * medians[0 if limit is None or value < limit else -1] for value in values)
        return far / len(values)

    if at is not None:
        low, high = statistics.median(logs[:at]), statistics.median(logs[at:])
        third = (high - low) / 3
        middle = sum(low + third < value < high - third for value in logs) / len(logs)
        if high - low > math.log(APART) and best < 0.35 * total:
            limit = math.exp((low + high) / 2)
            medians = [math.exp(low), math.exp(high)]
            doubt = "" if middle <= BETWEEN else (
                f"{100 * middle:.0f} % of the barrier probes lie between two states of "
                f"{1e9 * medians[0]:.0f} and {1e9 * medians[1]:.0f} ns")
            return States(limit, medians, outliers(limit, medians), doubt)
    low, high = logs[len(logs) // 10], logs[len(logs) * 9 // 10]
    doubt = "" if high - low < math.log(2 * APART) else (
        f"barrier probes range from {1e9 * math.exp(low):.0f} to {1e9 * math.exp(high):.0f} ns without falling into two states")
    return States(None, [whole], outliers(None, [whole]), doubt)


class Load:
    """What else used the cores between its making and `end`."""

    def __init__(self):
        self.before, self.own_before = self.processors(), self.own()

    @staticmethod
    def processors():
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, idle, waiting, hard, soft, stolen = map(int, file.readline().split()[1:9])
        tick = os.sysconf("SC_CLK_TCK")
        return [value / tick for value in (user + nice + system + hard + soft, idle + waiting, stolen)]

    @staticmethod
    def own():
        return sum(used.ru_utime + used.ru_stime for used in
                   (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)))

    def end(self):
        busy, idle, stolen = (now - then for now, then in zip(self.processors(), self.before))
        whole = max(busy + idle + stolen, 1e-9)
        self.foreign = max(busy - (self.own() - self.own_before), 0) / whole
        self.stolen = stolen / whole
        return self

    def doubts(self):
        if self.foreign > MOST_FOREIGN:
            yield f"other programs used {100 * self.foreign:.0f} % of the cores; wait until they have ended"
        if self.stolen > MOST_STOLEN:
            yield f"the host took {100 * self.stolen:.1f} % of the cores' time (steal)"


def judged(run, crowded):
    """Adds to each cell of a run what its contenders reached in each state. Returns the states and the doubts."""
    probes = [probe for cell in run["cells"] for each in cell["contenders"] for probe in each["probes"]]
    states = states_of(probes) if not crowded else States(None, [statistics.median(probes)], 0.0)
    doubts = [states.doubt] if states.doubt else []
    if states.outlying > MOST_OUTLYING:
        doubts.append(f"{100 * states.outlying:.0f} % of the barrier probes are outliers: the machine is not quiet")
    for cell in run["cells"]:
        for each in cell["contenders"]:
            each["states"] = []
            for state in range(len(states.medians)):
                times = sorted(time for time, probe in zip(each["seconds"], each["probes"]) if states.of(probe) == state)
                each["states"].append(figures(times) if len(times) >= 3 else None)
            each["all"] = figures(sorted(each.pop("seconds")))
            del each["probes"]
    return states, doubts


def figures(times):
    return {"samples": len(times), "min_us": 1e6 * times[0], "median_us": 1e6 * statistics.median(times),
            "max_us": 1e6 * times[-1]}
