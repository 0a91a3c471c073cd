# SPDX-License-Identifier: Apache-2.0
"""Several hosts for real: each has a network, an address and a name of its own."""

import os
import re
import shutil
import sys

import pytest

import network
from ddlrun import hardware

SHOW = """
import os, socket, sys
names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_SIZE MASTER_ADDR DDL_OPTIONS A"
sys.stdout.write(socket.gethostname() + " " + repr([os.environ.get(name) for name in names.split()]) + "\\n")
"""
MPIS = [pytest.param(kind, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name}"))
        for kind, name in (("openmpi", "mpirun.openmpi"), ("mpich", "mpirun.mpich"))]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    reason = network.why_not()
    if reason:
        pytest.skip(reason)
    made = network.Hosts(["host1", "host2"], tmp_path_factory.mktemp("network"))
    yield made
    made.remove()


@pytest.fixture
def on_host1(hosts, environment, tmp_path):
    """Runs ddlrun on host1; what it started must have ended."""
    def run(*words, variables=(), **more):
        done = hosts.run("host1", [sys.executable, "-m", "ddlrun", "--remote_shell", hosts.shell, *words],
                         {**environment, **dict(variables)}, cwd=tmp_path, **more)
        hosts.await_quiet()
        return done
    return run


@pytest.mark.parametrize("launcher", MPIS)
def test_ranks_on_two_hosts(on_host1, program, launcher):
    done = on_host1("--launcher", launcher, "-H", "host1,host2", "--accelerators", 2, "-x", "A=b c", sys.executable,
                    program(SHOW))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"host{rank // 2 + 1} {[str(rank), '4', str(rank % 2), '2', str(rank), '2', 'host1', '-mode p:2x2x1x1 ', 'b c']!r}"
        for rank in range(4)]
    assert re.search(r"^\+ \S*mpi\S+ ", done.stderr, re.MULTILINE)


@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="no Open MPI")
def test_a_failing_rank_ends_all(on_host1):
    done = on_host1("--launcher", "openmpi", "-H", "host1,host2", "--accelerators", 1, "sh", "-c",
                    "[ $RANK = 1 ] && exit 9; exec sleep 100")
    assert done.returncode == 9


def test_one_other_host(on_host1, program):
    done = on_host1("-H", "host2", "--accelerators", 1, sys.executable, program(SHOW))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("host2 ['0', '1'")


def test_this_host_by_its_name_needs_no_mpi(on_host1, program, environment):
    done = on_host1("-H", "host1", "--accelerators", 2, sys.executable, program(SHOW), variables={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    assert "+ " not in done.stderr and len(done.stdout.splitlines()) == 2


def test_a_host_that_does_not_answer(on_host1, environment):
    done = on_host1("-H", "host1,host3", "true")
    assert done.returncode == 1 and "[ERROR DDL-2-3] host 'host3' has no address" in done.stderr
    done = on_host1("-H", "host1,10.77.0.9", "true")
    assert done.returncode == 1 and "[ERROR DDL-2-2] host '10.77.0.9' is not reachable" in done.stderr


def test_other_hardware(on_host1, hosts, tmp_path):
    if sum(hardware.found()["cores"]) < 2:
        pytest.skip("one core")
    shell = tmp_path / "shell"  # behind it a host has one core
    shell.write_text(f"#!/bin/sh\nhost=$1; shift\nexec {hosts.shell} $host taskset -c {min(os.sched_getaffinity(0))} \"$@\"\n")
    shell.chmod(0o755)
    done = on_host1("--remote_shell", str(shell), "-H", "host1,host2", "true")
    assert done.returncode == 1
    assert "[ERROR DDL-2-5] host 'host2' has cores of each socket [1], host 'host1'" in done.stderr
