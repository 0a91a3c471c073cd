# SPDX-License-Identifier: Apache-2.0
"""floors.py INCLUDE_DDL: reads the include lines and names the header whose include climbs the house.

floors.py --culprits: builds small houses with one wrong include each, and one in order, and holds the answer against them.
"""
import pathlib
import re
import sys
import tempfile

# A room's floor; an include may go down or stay. The headers straight under ddl/ are floor 5, save those named here.
FLOOR = {"op": 0, "element": 0, "schedule": 1, "kernel": 2, "topology": 2, "transport": 3, "executor": 4, "shim": 6}
CALLS = 5
GROUND = {"contiguous.hpp", "error.hpp", "function_view.hpp", "named.hpp", "text.hpp"}

# What lies on a lower floor and is still not for this room: a pattern over the included path, and the rule.
CONCRETE = r"schedule/(direct|ring|multi|recursive|tree|hier|selected)"
FORBIDDEN = [
    ("transport", r"schedule/", "a transport knows no schedule"),
    ("kernel", CONCRETE, "a kernel knows the vocabulary of schedules, and none of them"),
    ("topology", CONCRETE, "the topology knows the vocabulary of schedules, and none of them"),
]
# Foreign headers: the rooms (None: all) in which a .hpp must not name them.
CUDA = r"(cuda|cub|thrust|nccl|nvml|cooperative_groups)([_./]|$)"
FOREIGN = [
    ({"op", "element", "schedule", "kernel"}, r"mpi\.h$", "MPI is for the floors above"),
    (None, CUDA, "only a .cuh may name CUDA"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def floor_of(path):
    """The floor of `path`, a pure path below ddl/."""
    if len(path.parts) > 1:
        return FLOOR.get(path.parts[0])
    return 0 if path.name in GROUND else CALLS


def complaints(house):
    """One sentence for each include of the headers below `house` that breaks a rule."""
    for file in sorted(house.rglob("*")):
        if file.suffix not in {".hpp", ".cuh", ".h"}:
            continue
        path = file.relative_to(house)
        room = path.parts[0] if len(path.parts) > 1 else ""
        own = floor_of(path)
        if own is None:
            yield f"{path}: the room '{room}' has no floor; give it one in tests/headers/floors.py"
            continue
        for line, name in numbered_includes(file.read_text()):
            where = f"{path}:{line}: includes {name}"
            target = None
            if name.startswith("ddl/"):
                target = pathlib.PurePosixPath(name[4:])
            elif (file.parent / name).exists() or name.split("/")[0] in FLOOR:
                yield f"{where}; write it as <ddl/...>"
                continue
            if target is not None:
                floor = floor_of(target)
                if floor is not None and floor > own:
                    yield f"{where}, which is floor {floor} and climbs from floor {own}"
                for rooms, pattern, rule in FORBIDDEN:
                    if room == rooms and re.match(pattern, str(target)):
                        yield f"{where}; {rule}"
            elif file.suffix != ".cuh":
                for rooms, pattern, rule in FOREIGN:
                    if (rooms is None or room in rooms) and re.match(pattern, name):
                        yield f"{where}; {rule}"


def numbered_includes(text):
    return [(text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in INCLUDE.finditer(text)]


CULPRITS = {
    "op/sum.hpp": "ddl/schedule/ring.hpp",
    "element/half.hpp": "ddl/kernel/combine.hpp",
    "schedule/ring.hpp": "ddl/transport/threads.hpp",
    "schedule/tree.hpp": "cuda_runtime.h",
    "schedule/cost.hpp": "mpi.h",
    "kernel/copy.hpp": "ddl/schedule/ring.hpp",
    "kernel/combine.hpp": "cuda/atomic",
    "topology/levels.hpp": "ddl/transport/threads.hpp",
    "transport/threads.hpp": "ddl/schedule/program.hpp",
    "transport/mpi.hpp": "ddl/executor/messages.hpp",
    "executor/memory.hpp": "ddl/allreduce.hpp",
    "executor/messages.hpp": "ddl/shim/ddl.h",
    "allreduce.hpp": "ddl/shim/ddl.h",
    "error.hpp": "ddl/schedule/ring.hpp",
    "attic/things.hpp": "vector",
    "broadcast.hpp": "transport/threads.hpp",
}
IN_ORDER = {
    "op/sum.hpp": ["ddl/error.hpp", "ddl/element/half.hpp", "cstddef"],
    "schedule/ring.hpp": ["ddl/schedule/program.hpp", "ddl/op/sum.hpp"],
    "kernel/combine.hpp": ["ddl/schedule/program.hpp", "ddl/topology/levels.hpp"],
    "kernel/device.cuh": ["cuda/atomic", "cub/cub.cuh"],
    "transport/mpi.hpp": ["mpi.h", "ddl/kernel/combine.hpp"],
    "executor/memory.hpp": ["ddl/schedule/ring.hpp", "ddl/transport/threads.hpp"],
    "allreduce.hpp": ["ddl/executor/memory.hpp", "ddl/reduce.hpp"],
    "shim/instantiate.hpp": ["ddl/allreduce.hpp", "ddl/shim/ddl.h"],
}


def complaints_about(headers):
    with tempfile.TemporaryDirectory() as folder:
        for path, names in headers.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("#pragma once\n" + "".join(f"#include <{name}>\n" for name in names))
        return list(complaints(pathlib.Path(folder)))


def wrong_answers():
    for path, name in CULPRITS.items():
        answer = complaints_about({path: ["cstddef", name]})
        if len(answer) != 1 or not answer[0].startswith(path):
            yield f"{path} includes {name}, and the answer is {answer}"
    for answer in complaints_about(IN_ORDER):
        yield f"all is in order, and yet: {answer}"


if len(sys.argv) != 2:
    sys.exit(__doc__)
found = list(wrong_answers() if sys.argv[1] == "--culprits" else complaints(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "in order")
sys.exit(bool(found))
