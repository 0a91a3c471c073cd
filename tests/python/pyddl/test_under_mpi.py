# SPDX-License-Identifier: Apache-2.0
"""pyddl under mpirun, beside mpi4py, and on several hosts: the same programs, the ranks of MPI."""

import os
import subprocess
import sys

import pytest

import conftest
import network

pytestmark = pytest.mark.skipif(not conftest.HAS_MPI, reason="this build has no MPI")


def has_mpi4py():
    """Whether there is an mpi4py of the MPI of this build."""
    script = "from mpi4py import MPI; print(MPI.Get_library_version())"
    done = subprocess.run([conftest.MPIEXEC, "-n", "1", sys.executable, "-c", script], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}, check=False)
    return done.returncode == 0 and ("Open MPI" in done.stdout) == conftest.IS_OPEN_MPI


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("per_node", ["", "1", "2"])
def test_collectives(mpirun, count, per_node):
    done = mpirun(count, """
assert pyddl.world().transport == "cluster"
for n in (0, 1, 1000, 200_000):
    for make in (np.zeros, pyddl.zeros):
        data = make(n, np.float32)
        data[:] = np.arange(n) % 50 + rank
        pyddl.allreduce(data, n, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM)
        same(data, np.arange(n) % 50 * size + sum(range(size)))
        pyddl.broadcast(data, size - 1)
usable, memory = pyddl.malloc(64, 400)
pyddl.memcpy_host_to_device(memory, np.full(100, rank, np.float32))
pyddl.allreduce(memory, 100, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_MAX)
back = np.zeros(100, np.float32)
pyddl.memcpy_device_to_host(back, memory)
same(back, np.full(100, size - 1))
pyddl.free(memory)
say("done", rank, size)
pyddl.finalize()
""", variables={"DDL_RANKS_PER_NODE": per_node} if per_node else {})
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"done {rank} {count}" for rank in range(count)]


@pytest.mark.parametrize("per_node", ["", "1"])
@pytest.mark.parametrize("end", ["pass", "pyddl.finalize()"])
def test_an_exception_that_ends_a_rank_ends_the_job(mpirun, per_node, end):
    done = mpirun(2, f"""
data = np.ones(10)
pyddl.allreduce(data)
try:
    if rank == 1:
        raise LookupError("no more data, \\udcff")
    try:
        pyddl.allreduce(data)
    except pyddl.Broken as told:
        say(told)
        raise
finally:
    {end}
""", variables={"DDL_RANKS_PER_NODE": per_node} if per_node else {})
    assert done.returncode != 0
    assert "LookupError: no more data" in done.stderr
    assert "rank 1 gave up: LookupError: no more data, ?" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("first", ["mpi4py", "pyddl"])
def test_beside_mpi4py(mpirun, first):
    if not has_mpi4py():
        pytest.skip("no mpi4py of this MPI")
    begin = ["from mpi4py import MPI", "pyddl.init()"]
    done = mpirun(2, "\n".join(begin if first == "mpi4py" else begin[::-1]) + """
world = MPI.COMM_WORLD
assert (pyddl.rank(), pyddl.size()) == (world.rank, world.size)
mine, theirs = np.full(1000, world.rank + 1.0), np.full(1000, world.rank + 1.0)
for turn in range(3):
    pyddl.allreduce(mine)
    world.Allreduce(MPI.IN_PLACE, theirs)
    same(mine, theirs)
pyddl.finalize()
world.Barrier()
say("done")
""", preamble=conftest.PREAMBLE.split("pyddl.init()")[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("done") == 2


NUMBERS = """
from programs import *
import pyddl
numbers = lambda: (pyddl.rank(), pyddl.size(), pyddl.local_rank(), pyddl.local_size())
before = numbers()
pyddl.init()
assert before == numbers(), (before, numbers())
say(*before)
pyddl.finalize()
"""


def test_numbers_before_init_are_those_of_the_launcher_that_init_goes_by(mpirun, python):
    """Where another one has left its own in the environment."""
    left = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    for variables in (left, {**left, "DDL_TRANSPORT": "mpi"}):
        done = mpirun(2, NUMBERS, preamble="", variables=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(done.stdout.splitlines()) == ["0 2 0 2", "1 2 1 2"]
    left = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert python(NUMBERS, preamble="", variables={**left, "DDL_TRANSPORT": "mpi"}) == "0 1 0 1\n"


def test_mpirun_inside_of_ddlrun(ddlrun, tmp_path):
    """Its processes would all be the rank that ddlrun takes them for, each alone in a world."""
    path = tmp_path / "program.py"
    path.write_text("import pyddl\nfrom programs import *\npyddl.init()\nsay(pyddl.rank(), pyddl.size())\npyddl.finalize()\n")
    flags = ["--oversubscribe", "--bind-to", "none"] if conftest.IS_OPEN_MPI else []

    def run(outside, inside, *words, **more):
        return ddlrun("--accelerators", outside, *words, conftest.MPIEXEC, *flags, "-n", inside, sys.executable, path, **more)
    done = run(1, 2)
    assert done.returncode != 0 and done.stdout == ""
    assert "init: this is one of 2 processes of a launcher of MPI that ddlrun has started as rank 0" in done.stderr, done.stderr
    for outside, inside, words in ((1, 2, ("-no_ddloptions", "-x", "DDL_TRANSPORT=mpi")), (2, 1, ())):
        done = run(outside, inside, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(done.stdout.splitlines()) == ["0 2", "1 2"]


def test_ranks_of_this_host_beside_mpi4py(ranks):
    if not has_mpi4py():
        pytest.skip("no mpi4py of this MPI")
    lines = ranks(2, NUMBERS, preamble="from mpi4py import MPI\nassert MPI.COMM_WORLD.size == 1\n")
    assert sorted(lines) == ["0 2 0 2", "1 2 1 2"]


def test_a_program_in_another_folder_than_its_libraries_were_named_from(mpirun, environment, tmp_path):
    folders = [os.path.relpath(folder, tmp_path) for folder in environment["DDL_LIBRARY_PATH"].split(os.pathsep) if folder]
    done = mpirun(1, """
import os, pyddl
os.chdir("/")
pyddl.init()
pyddl.finalize()
""", preamble="", variables={"DDL_LIBRARY_PATH": os.pathsep.join(folders)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_launcher_of_another_mpi_is_told(mpirun):
    name = "PMI_SIZE" if conftest.IS_OPEN_MPI else "OMPI_COMM_WORLD_SIZE"
    done = mpirun(1, f"""
os.environ["{name}"] = "2"
with refused(pyddl.Error, "a launcher has started 2 processes, and MPI knows of this one alone"):
    pyddl.init()
""", preamble=conftest.PREAMBLE.split("pyddl.init()")[0])
    assert done.returncode == 0, done.stdout + done.stderr


def test_mismatches_are_told(mpirun):
    done = mpirun(2, """
with refused(pyddl.Mismatch, f"rank {rank}"):
    pyddl.allreduce(np.zeros(10 + rank))
with refused(ValueError if rank else pyddl.Mismatch, f"allreduce, rank {rank}"):
    pyddl.allreduce(np.zeros(10)[::2] if rank else np.zeros(10))
pyddl.barrier()
pyddl.finalize()
""")
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_exception_on_one_rank_ends_the_run(mpirun):
    done = mpirun(2, """
if rank == 1:
    raise ValueError("on purpose")
pyddl.set_timeout(10)
pyddl.allreduce(np.zeros(10))
""")
    assert done.returncode != 0 and "on purpose" in done.stderr


def test_on_several_hosts_by_ddlrun(environment, tmp_path, tmp_path_factory):
    reason = network.why_not()
    if reason:
        pytest.skip(reason)
    program = tmp_path / "program.py"
    program.write_text(conftest.PREAMBLE + """
import socket
data = np.arange(100_000, dtype=np.float32) % 100
pyddl.allreduce(data)
same(data, np.arange(100_000) % 100 * size)
say(rank, size, pyddl.local_rank(), pyddl.local_size(), pyddl.world().transport, socket.gethostname())
pyddl.finalize()
""")
    hosts = network.Hosts(["host1", "host2"], tmp_path_factory.mktemp("network"))
    try:
        done = hosts.run("host1", [sys.executable, "-m", "ddlrun", "--remote_shell", hosts.shell, "-H", "host1,host2",
                                   "--accelerators", 2, sys.executable, program], environment, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(done.stdout.splitlines()) == [
            f"{rank} 4 {rank % 2} 2 cluster host{rank // 2 + 1}" for rank in range(4)]
        hosts.await_quiet()
    finally:
        hosts.remove()
