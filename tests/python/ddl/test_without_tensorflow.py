# SPDX-License-Identifier: Apache-2.0
"""What `import ddl` does where TensorFlow is missing, or is a stand-in; tests/shim/tensorflow.cpp has one for the operators."""

import sys

import pytest

import conftest

STAND_IN = """
import os, sys, types
from programs import *

class Options:
    allow_growth, visible_device_list = False, ""

class ConfigProto:
    def __init__(self, **_):
        self.gpu_options, self.device_count = Options(), {}
    def CopyFrom(self, other):
        self.device_count = dict(other.device_count)

class Session:
    def __init__(self, target="", graph=None, config=None):
        self.target, self.graph, self.config = target, graph, config

class TensorShape:
    def __init__(self, extents): self.extents = extents
    def num_elements(self): return None if self.extents is None else int(np.prod(self.extents))

import numpy as np
tensorflow = sys.modules["tensorflow"] = types.ModuleType("tensorflow")
tensorflow.compat = types.SimpleNamespace(v1=types.SimpleNamespace(Session=Session, ConfigProto=ConfigProto))
tensorflow.TensorShape = TensorShape
"""


# A rank has the stand-in, and initialises nothing; a process that it makes has no TensorFlow.
IN_PROCESSES = STAND_IN.replace("import os", "import multiprocessing, os", 1) + """
if __name__ == "__main__":
    os.environ.pop("DDL_OPTIONS", None)
else:
    sys.modules["tensorflow"] = None
"""


def test_without_a_launcher_there_is_one_rank_and_nothing_is_loaded(python):
    python("""
import ddl
assert (ddl.rank(), ddl.size(), ddl.local_rank(), ddl.local_size(), ddl.num_hosts()) == (0, 1, 0, 1, 1)
for call in (lambda: ddl.init(""), lambda: ddl.bcast(1), lambda: ddl.allreduce_n([1]), lambda: ddl.grads_reduce([])):
    with refused(RuntimeError, "ddl.", "DDL could not start, for OMPI_COMM_WORLD_RANK is not set; start the program with mpirun or ddlrun"):
        call()
with refused(AttributeError, "no attribute 'broadcast'"):
    ddl.broadcast
assert "tensorflow" not in sys.modules and "pyddl" not in sys.modules
assert set(ddl.__all__) <= set(dir(ddl))
""", preamble="import sys\nfrom programs import *\n", variables={"DDL_OPTIONS": "-mode r"})


def test_a_launcher_that_says_half_is_none(python):
    python("import ddl\nassert ddl.size() == 1\nwith refused(RuntimeError, 'OMPI_COMM_WORLD_LOCAL_RANK is not set'):\n    ddl.init('')\n",
           preamble="from programs import *\n", variables={"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"})


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_a_process_of_multiprocessing_is_no_rank(ranks, way):
    """It imports the main module anew, with the variables of its parent."""
    ranks(2, f"WAY = {way!r}\n" + """
import ddl  # which wants TensorFlow in a rank, and nothing elsewhere
def work(_):
    with refused(RuntimeError, f"ddl.init: this process was made by rank {ddl.rank()} with multiprocessing, and is no rank itself"):
        ddl.init("")
    return ddl.rank(), ddl.size()
if __name__ == "__main__":
    with multiprocessing.get_context(WAY).Pool(1) as pool:
        # a pool whose processes cannot import it makes new ones for ever
        assert pool.map_async(work, [0]).get(60) == [(int(os.environ["RANK"]), 2)]
""", preamble=IN_PROCESSES)


def test_under_a_launcher_tensorflow_is_wanted(ranks):
    ranks(2, "with refused(ImportError, 'tensorflow'):\n    import ddl\n",
          preamble="import sys\nfrom programs import *\nsys.modules['tensorflow'] = None\n")


def test_without_options_sessions_alone_are_changed(ddlrun, program):
    path = program(STAND_IN + """
assert "DDL_OPTIONS" not in os.environ
initialise = Session.__init__
import ddl
rank = int(os.environ["RANK"])
assert (ddl.rank(), ddl.size(), ddl.local_rank(), ddl.num_hosts()) == (rank, 3, rank, 1)
assert Session.__init__ is not initialise and Session.__init__.__wrapped__ is initialise
given = ConfigProto()
given.device_count["CPU"] = 2
session = Session(config=given)
assert session.config.gpu_options.visible_device_list == str(rank) and session.config.gpu_options.allow_growth
assert session.config.device_count == {"CPU": 2} and given.gpu_options.visible_device_list == ""
for call in (lambda: ddl.bcast(1), lambda: ddl.allreduce_n([1]), lambda: ddl.grads_reduce([])):
    with refused(RuntimeError, f", rank {rank}: DDL is not started; call ddl.init(options) first"):
        call()
with refused(TypeError, f"ddl.init, rank {rank}: options is None; pass words such as"):
    ddl.init(None)
""")
    done = ddlrun("--no_ddloptions", "--accelerators", 3, sys.executable, path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(done.stdout.splitlines())
    assert [line for line in lines if "rank" in line] == [f"DDL: rank {rank} of 3, gpuid {rank}, hosts 1" for rank in range(3)]
    assert sum("DDL_OPTIONS is not set" in line for line in lines) == 1
    done = ddlrun("--no_ddloptions", "--accelerators", 3, "sh", "-c", 'exec "$0" "$1" >&-', sys.executable, path)  # as daemons have it
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


@pytest.mark.parametrize("limit, sizes, groups", [
    ("", [10 ** 6] * 5, [5]),
    ("1000000", [400_000, 400_000, 400_000, 5], [2, 2]),
    ("10", [100_000, 100_000, 7, 200_000, 1], [2, 2, 1]),  # none is small
    ("1000000", [5_000_000, 1], [1, 1]),
    ("1000000", [], []),
])
def test_gradients_go_in_groups(python, limit, sizes, groups):
    python(STAND_IN + f"""
from ddl import operators
class Variable:
    def __init__(self, size): self.shape = (size,)
pairs = [(Variable(size), Variable(size)) for size in {sizes}]
found = list(operators._groups(pairs))
assert [len(group) for group in found] == {groups}, found
assert [pair for group in found for pair in group] == pairs
""", preamble="", variables={"DDL_GROUP_SIZE": limit})


@pytest.mark.parametrize("limit", ["0", "many", "-3"])
def test_a_group_size_that_is_none(python, limit):
    python(STAND_IN + f"""
from ddl import operators
with refused(ValueError, 'ddl.grads_reduce, rank 0: DDL_GROUP_SIZE is "{limit}"; set a number of elements, 1 or more'):
    list(operators._groups([]))
""", preamble="", variables={"DDL_GROUP_SIZE": limit})


def test_eager_code_has_the_gpu_of_its_local_rank(python):
    python(STAND_IN + """
os.environ.update({"OMPI_COMM_WORLD_" + name: value for name, value in (("RANK", "5"), ("SIZE", "8"), ("LOCAL_RANK", "3"),
                                                                         ("LOCAL_SIZE", "4"))})
sys.modules["ddl"] = package = types.ModuleType("ddl")  # whose import would do it all
package.__path__ = [FOLDER]
from ddl import patches
chosen = []
def list_physical_devices(kind):
    return [f"{kind} {number}" for number in range(GPUS)]
def set_visible_devices(device, kind):
    if REFUSES: raise RuntimeError("they are in use")
    chosen.append((device, kind))
tensorflow.config = types.SimpleNamespace(list_physical_devices=list_physical_devices, set_visible_devices=set_visible_devices,
    experimental=types.SimpleNamespace(set_memory_growth=lambda device, grows: chosen.append((device, grows))))
for GPUS, REFUSES, expected in ((0, False, []), (4, False, [("GPU 3", "GPU"), ("GPU 3", True)]),
                                (2, False, [("GPU 1", "GPU"), ("GPU 1", True)]), (4, True, [])):
    chosen.clear()
    patches.give_gpu_to_eager_code()
    assert chosen == expected, chosen
""".replace("FOLDER", repr(str(conftest.PACKAGES / "ddl"))), preamble="")


def test_the_library_is_found_and_loads_alone(python, tmp_path, environment):
    text = "import ctypes, os, ddl\npath = ddl.operator_library()\nassert os.path.basename(path) == 'ddl_MDR.so'\n"
    python(text + "library = ctypes.CDLL(path)\nlibrary.ddl_tensorflow_ranks.restype = ctypes.c_void_p\n"
           "assert library.ddl_tensorflow_ranks() is None\n", preamble="")
    folder = next(each for each in environment["DDL_LIBRARY_PATH"].split(":") if each)
    (tmp_path / "libddl.so.0").symlink_to(folder + "/libddl.so.0")
    python("import ddl\nwith refused(ImportError, 'ddl_MDR.so is in no folder of DDL_LIBRARY_PATH'):\n    ddl.operator_library()\n",
           preamble="from programs import *\n", variables={"DDL_LIBRARY_PATH": str(tmp_path)})
