# SPDX-License-Identifier: Apache-2.0
"""What all tests of the Python side share: the packages of this tree, a limit on time, and programs in processes."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "include" / "ddl" / "shim" / "python"
LIMIT = 600  # seconds a test may take, on a machine ten times as slow as need be

MPIEXEC = os.environ.get("DDL_TEST_MPIEXEC", "")
HAS_MPI = bool(MPIEXEC) and shutil.which(MPIEXEC) is not None

sys.path.insert(0, str(PACKAGES))


def _is_open_mpi():
    said = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, timeout=LIMIT / 2, check=False)
    return any(name in said.stdout + said.stderr for name in ("Open MPI", "OpenRTE"))


IS_OPEN_MPI = HAS_MPI and _is_open_mpi()


@pytest.fixture(autouse=True)
def no_test_hangs():
    def give_up(_number, _frame):
        raise TimeoutError(f"the test was not done after {LIMIT} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def entry_points(folder):
    """What pip leaves of the packages beside them: the word of `pyproject.toml` on what PyTorch is to load."""
    words = (PACKAGES / "pyproject.toml").read_text().partition('[project.entry-points."torch.backends"]')[2].partition("\n[")[0]
    information = folder / "ddl_collectives-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: ddl-collectives\nVersion: 0\n")
    (information / "entry_points.txt").write_text("[torch.backends]" + words.replace('"', ""))
    return folder


@pytest.fixture
def environment(tmp_path):
    """The environment of a program: these packages, no launcher around us, temporary files of its own."""
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith(("OMPI_COMM_WORLD", "PMI", "SLURM_", "LSB_", "DDL_HOST", "DDL_JOB", "MASTER_",
                                         "TORCHELASTIC_"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "DDL_OPTIONS", "DDL_TRANSPORT", "DDL_MAPPED_ARRAYS"):
        variables.pop(name, None)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    folders = [PACKAGES, pathlib.Path(__file__).parent, entry_points(tmp_path / "points")]
    variables.update(PYTHONPATH=os.pathsep.join(map(str, folders)), TMPDIR=str(temporary), OMPI_ALLOW_RUN_AS_ROOT="1",
                     OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", DDL_TIMEOUT="200",
                     RES_OPTIONS="timeout:1 attempts:1")  # for names that no server knows, where none answers
    return variables


@pytest.fixture(scope="session")
def cuda_double(tmp_path_factory):
    """A line of Python by which the arrays of a GPU have a driver: a double, which is compiled here."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    library = tmp_path_factory.mktemp("cuda") / "driver.so"
    subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library,
                    ROOT / "tests" / "shim" / "doubles" / "cuda.cpp"], check=True, timeout=300)
    return f"import ctypes, pyddl.cuda\npyddl.cuda.LIBRARY = {str(library)!r}\n"


@pytest.fixture
def ddlrun(environment, tmp_path):
    """Runs `python -m ddlrun` with these words, and returns what `subprocess.run` does."""
    def run(*words, timeout=LIMIT / 2, **more):
        variables = {**environment, **more.pop("variables", {})}
        return subprocess.run([sys.executable, "-m", "ddlrun", *map(str, words)], env=variables, capture_output=True,
                              text=True, timeout=timeout, cwd=tmp_path, check=False, **more)
    return run


@pytest.fixture
def program(tmp_path):
    """A Python program with this text; returns its path."""
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return path
    return write


@pytest.fixture
def command(tmp_path, environment):
    """Puts a command in front of PATH: an executable file with this text. Returns its folder."""
    folder = tmp_path / "bin"

    def write(name, text):
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
        environment["PATH"] = os.pathsep.join([str(folder)] + [part for part in environment["PATH"].split(os.pathsep)
                                                               if part != str(folder)])
        return path
    return write


PREAMBLE = """
import os, sys, time
import numpy as np
import pyddl
from programs import *
pyddl.init()
rank, size = pyddl.rank(), pyddl.size()
"""


TORCH = """
import datetime, os, sys
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp
from programs import *
assert "pyddl" not in sys.modules, "importing torch is to stay cheap"
dist.init_process_group("ddl", init_method="env://")
rank, size = dist.get_rank(), dist.get_world_size()
def of(rank, shape, dtype=torch.float32):
    drawn = torch.Generator().manual_seed(rank)
    values = torch.randint(0, 2 if dtype == torch.bool else 4, shape, generator=drawn, device="cpu")
    return values.to(torch.get_default_device(), dtype)
def same(found, expected):
    assert found.dtype == expected.dtype and torch.equal(found.cpu().float(), expected.cpu().float()), (found, expected)
"""


@pytest.fixture(params=["cpu", "cuda"])
def torch_on(request):
    """The preamble `TORCH`, whose tensors lie on the host, or on a GPU where there is one."""
    if request.param == "cuda" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no GPU that PyTorch knows")
    return TORCH + f"torch.set_default_device({request.param!r})\n"


TENSORFLOW = """
import os, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_NUM_INTRAOP_THREADS="1")
import numpy as np
import tensorflow as tf
from programs import *
v1, errors = tf.compat.v1, tf.errors
"""


@pytest.fixture
def python(environment, tmp_path):
    """Runs a Python program alone; it must succeed. Returns what it printed."""
    def run(text, preamble=PREAMBLE, timeout=LIMIT / 2, variables=(), status=0):
        path = tmp_path / "alone.py"
        path.write_text(preamble + text)
        done = subprocess.run([sys.executable, str(path)], env={**environment, **dict(variables)}, capture_output=True,
                              text=True, timeout=timeout, cwd=tmp_path, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout
    return run


@pytest.fixture
def ranks(ddlrun, tmp_path):
    """Runs a Python program on so many ranks of this host; all must succeed. Returns what they printed, by lines."""
    def run(count, text, preamble=PREAMBLE, timeout=LIMIT / 2, status=0, **more):
        path = tmp_path / "ranks.py"
        path.write_text(preamble + text)
        done = ddlrun("--accelerators", count, sys.executable, path, timeout=timeout, **more)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout.splitlines()
    return run


@pytest.fixture
def mpirun(environment, tmp_path):
    """Runs a Python program under the mpirun of this build, and returns what `subprocess.run` does."""
    def run(count, text, preamble=PREAMBLE, timeout=LIMIT / 2, variables=(), flags=()):
        path = tmp_path / "program.py"
        path.write_text(preamble + text)
        flags = ["--oversubscribe", "--bind-to", "none", *flags] if IS_OPEN_MPI else list(flags)
        return subprocess.run([MPIEXEC, *flags, "-n", str(count), sys.executable, path], capture_output=True, text=True,
                              env={**environment, **dict(variables)}, timeout=timeout, cwd=tmp_path, check=False)
    return run
