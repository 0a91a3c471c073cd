# SPDX-License-Identifier: Apache-2.0
"""Other Pythons than the one that runs the tests: the same modules and libraries serve all from 3.9 on."""

import glob
import os
import shutil
import subprocess
import sys

import pytest

import conftest

_QUESTION = """
import sys
try:
    import numpy  # of another Python's packages it is found, and not taken
except Exception:
    numpy = None
print(*sys.version_info[:3], sys.implementation.name, numpy is not None, sys.executable)
"""


def _others():
    """The interpreters on PATH, of the system and of pyenv, from 3.9 on, each once."""
    places = [shutil.which(f"python3.{minor}") or "" for minor in range(9, 20)] + ["/usr/bin/python3"]
    places += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    seen = {os.path.realpath(sys.executable), os.path.realpath("")}
    for place in places:
        if os.path.realpath(place) in seen:
            continue
        try:
            said = subprocess.run([place, "-c", _QUESTION], capture_output=True, text=True, timeout=300, check=True).stdout.split()
        except (OSError, subprocess.SubprocessError):  # such as a name that pyenv knows, and has no interpreter for
            continue
        if os.path.realpath(said[5]) in seen:  # that a program of pyenv's stands for
            continue
        seen |= {os.path.realpath(place), os.path.realpath(said[5])}
        if said[3] == "cpython" and (int(said[0]), int(said[1])) >= (3, 9):
            yield pytest.param(place, said[4] == "True", id=f"{'.'.join(said[:3])} of {os.path.dirname(place)}")


OTHERS = list(_others()) or [pytest.param("", False, marks=pytest.mark.skip(reason="no other Python from 3.9 on was found"))]


@pytest.mark.parametrize("python, _", OTHERS)
def test_ddlrun_needs_no_package(python, _, environment, tmp_path):
    done = subprocess.run([python, "-m", "ddlrun", "--accelerators", "2", "--tag_output", python, "-c",
                           "import os; print(os.environ['WORLD_SIZE'])"],
                          env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] 2", "[1] 2"]


@pytest.mark.parametrize("python, _", OTHERS)
def test_every_module_is_in_its_language(python, _, environment):
    read = "import pathlib, sys\nfor file in pathlib.Path(sys.argv[1]).rglob('*.py'): compile(file.read_text(), str(file), 'exec')"
    done = subprocess.run([python, "-c", read, conftest.PACKAGES], env=environment, capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("python, has_numpy", OTHERS)
def test_collectives(python, has_numpy, environment, tmp_path, program):
    if not has_numpy:
        pytest.skip("it has no NumPy")
    path = program("""
import numpy as np
import dl_comm, ml_comm, pyddl
from programs import *
pyddl.init()
rank = pyddl.rank()
assert hasattr(pyddl.Communicator, "_long_allreduce")  # the library's own function is before it
data = np.full(1000, rank + 1, np.float32)
pyddl.allreduce(data)
pyddl.allreduce(data.reshape(10, 10, 10).transpose(1, 0, 2))
pyddl.allreduce_async(data).wait()
plan = pyddl.plan_allreduce(data)
plan()
same(data, np.full(1000, 24))
with refused(ValueError, "is strided"):
    pyddl.allreduce(data[::2])
try:
    with pyddl.mapped_arrays():
        data = np.full(100_000, rank + 1.0)
except pyddl.Unsupported:
    assert np.lib.NumpyVersion(np.__version__) < "1.22.0"
pyddl.allreduce(data)
memory = pyddl.malloc(64, 400)[1]
pyddl.memcpy_host_to_device(memory, np.ones(100, np.float32))
pyddl.allreduce(memory, 100, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM)
same(memory.array(100), np.full(100, 2))
dl_comm.init()
same(dl_comm.gradients([np.full(9, rank, np.float64)])[0], np.full(9, 0.5))
dl_comm.finalize()
pyddl.finalize()
""")
    done = subprocess.run([python, "-m", "ddlrun", "--accelerators", "2", python, path], env=environment, capture_output=True,
                          text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
