# SPDX-License-Identifier: Apache-2.0
"""The checks before a start on several hosts, with stand-ins for the remote shell, mpirun and srun."""

import json
import re
import socket
import subprocess
import sys

import pytest

# What a host answers is in <host>.json; a host without one is not reachable.
SHELL = """#!/bin/sh
folder=$(dirname "$0")
host=$1
if [ -f "$folder/$host.json" ]; then printf 'Gr\\374\\337e von %s\\n' "$host"; echo "ddl hardware: $(cat "$folder/$host.json")"; exit 0; fi
if [ "$host" = h-without ]; then echo "python: No module named ddlrun" >&2; exit 1; fi
echo "ssh: connect to host $host port 22: Connection refused" >&2
exit 255
"""
MPIRUN = """#!/bin/sh
[ "$1" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit 0; }
echo "started $#"
exit 6
"""


@pytest.fixture
def hosts(command, monkeypatch, environment, tmp_path):
    """Makes hosts that answer with this host's hardware, changed by what is given for them."""
    from ddlrun import hardware
    environment["PATH"] = "/usr/bin:/bin"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("DDL_LIBRARY_PATH", raising=False)
    environment.pop("DDL_LIBRARY_PATH", None)
    found = hardware.found()
    shell = command("shell", SHELL)
    command("mpirun", MPIRUN)

    def make(**changes):
        for name, change in changes.items():
            (shell.parent / f"{name}.json").write_text(json.dumps({**found, "host": name, **change}))
        return str(shell)
    return make


def start(ddlrun, shell, *words):
    return ddlrun("--remote_shell", shell, "--accelerators", 1, *words, "python", "x")


def test_equal_hosts_start(ddlrun, hosts):
    shell = hosts(**{"203.0.113.1": {}, "203.0.113.2": {}})
    done = start(ddlrun, shell, "-H", "203.0.113.1,203.0.113.2")
    assert done.returncode == 6, done.stderr  # mpirun's status is ours
    assert done.stdout.startswith("started ")
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("+ ") and lines[0].endswith(" python x")


def test_a_host_that_is_not_reachable(ddlrun, hosts):
    done = start(ddlrun, hosts(**{"203.0.113.1": {}}), "-H", "203.0.113.1,203.0.113.9")
    assert done.returncode == 1 and done.stdout == ""
    assert re.match(r"\[ERROR DDL-2-2\] host '203.0.113.9' is not reachable .*Connection refused", done.stderr)


def test_a_name_of_no_host(ddlrun, hosts):
    done = start(ddlrun, hosts(), "-H", "203.0.113.1,no-such-host.invalid")
    assert done.returncode == 1
    assert "[ERROR DDL-2-3] host 'no-such-host.invalid' has no address" in done.stderr
    for name in ("a" * 64, "a..b"):  # such as no resolver is asked for
        done = start(ddlrun, hosts(), "-H", name)
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert f"[ERROR DDL-2-3] host '{name}' has no address" in done.stderr


def test_this_host_needs_no_address(hosts, environment, tmp_path):
    """As no MPI asks for one of it: in a container its name often has none."""
    renamed = ["unshare", "--user", "--map-root-user", "--uts", "sh", "-c", 'hostname no-such-host && exec "$@"', "sh"]
    if subprocess.run([*renamed, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no namespaces here in which the host can have another name")
    shell = hosts()
    for words in ((), ("-H", "no-such-host")):
        done = subprocess.run([*renamed, sys.executable, "-m", "ddlrun", "--remote_shell", shell, "--launcher", "openmpi",
                               "--accelerators", "1", *words, "python", "x"],
                              env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
        assert done.returncode == 6 and "DDL-2-" not in done.stderr, done.stderr


@pytest.mark.parametrize("change, number, said", [
    ({"ddl": "0.0.9"}, 4, "has ddl 0.0.9"),
    ({"library": "123456789abc"}, 4, "libddl.so 123456789abc"),
    ({"cores": [64, 64]}, 5, r"has cores of each socket \[64, 64\]"),
    ({"gpus": ["A", "A"]}, 5, r"has GPUs \['A', 'A'\]"),
    ({"machine": "ppc64le"}, 5, "has machine ppc64le"),
])
def test_hosts_that_differ(ddlrun, hosts, change, number, said):
    shell = hosts(**{"203.0.113.1": {}, "203.0.113.2": change})
    done = start(ddlrun, shell, "-H", "203.0.113.1,203.0.113.2")
    assert done.returncode == 1 and done.stdout == ""
    assert re.match(rf"\[ERROR DDL-2-{number}\] host '203.0.113.2' .*{said}.*host '203.0.113.1'", done.stderr)


def test_a_host_without_ddl(ddlrun, hosts, command, environment):
    shell = hosts(**{"203.0.113.1": {}})
    command("shell", SHELL.replace("h-without", "203.0.113.3"))
    done = start(ddlrun, shell, "-H", "203.0.113.1,203.0.113.3")
    assert done.returncode == 1
    assert re.match(r"\[ERROR DDL-2-4\] host '203.0.113.3' has no ddl", done.stderr)


def test_skipped_checks_are_told(ddlrun, hosts):
    done = start(ddlrun, hosts(), "--skipchecks", "-H", "203.0.113.1,203.0.113.9")
    assert done.returncode == 6
    assert "[WARN DDL-2-28] SKIPCHECKS" in done.stderr


def test_many_hosts_are_not_checked(ddlrun, hosts):
    done = start(ddlrun, hosts(), "-H", ",".join(f"203.0.113.{i}" for i in range(1, 12)))
    assert done.returncode == 6
    assert "[WARN DDL-2-39] 11 hosts" in done.stderr and "[WARN DDL-2-28]" in done.stderr


def test_a_rank_file_of_ones_own_skips_them(ddlrun, hosts, tmp_path):
    (tmp_path / "mine").write_text("rank 0=203.0.113.1 slot=0:0\nrank 1=203.0.113.9 slot=0:0\n")
    done = ddlrun("--remote_shell", hosts(), "-rf", "mine", "python", "x")
    assert done.returncode == 6 and "DDL-2-" not in done.stderr


def test_no_mpi(ddlrun, hosts, environment, tmp_path):
    shell = hosts()
    environment["PATH"] = str(tmp_path)
    done = start(ddlrun, shell, "-H", "203.0.113.1,203.0.113.2")
    assert done.returncode == 1
    assert "[ERROR DDL-2-7] the ranks are to be started by an MPI" in done.stderr
    done = ddlrun("--launcher", "srun", "--accelerators", 1, "python", "x")
    assert "[ERROR DDL-2-7] the ranks are to be started by srun, and PATH has none" in done.stderr


def test_a_remote_shell_that_is_none(ddlrun, hosts):
    hosts()
    done = start(ddlrun, "/nowhere/shell", "-H", "203.0.113.1,203.0.113.2")
    assert done.returncode == 1
    assert "[ERROR DDL-2-2]" in done.stderr and "the remote shell does not start" in done.stderr


def test_an_unexpected_error_comes_with_a_traceback(ddlrun, hosts):
    shell = hosts(**{"203.0.113.1": {}, "203.0.113.2": {}})
    with open(shell, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho 'ddl hardware: []'\n")
    done = start(ddlrun, shell, "-H", "203.0.113.1,203.0.113.2")
    assert done.returncode == 1
    assert done.stderr.startswith("[ERROR DDL-2-0] unexpected error\nTraceback")


def test_an_address_of_a_family_that_this_host_lacks_is_not_its_own(monkeypatch):
    from ddlrun import hosts
    class Lacks(socket.socket):
        def __init__(self, *_):
            raise OSError("Address family not supported by protocol")
    monkeypatch.setattr(hosts.socket, "socket", Lacks)
    assert not hosts.is_this_host("127.0.0.1")


def test_srun_starts_ranks_that_know_their_place(ddlrun, hosts, command, program, environment, tmp_path):
    environment["PATH"] = f"/usr/bin:/bin:{tmp_path}/a folder"
    command("scontrol", "#!/bin/sh\nprintf '203.0.113.1\\n203.0.113.2\\n'\n")
    # starts the ranks of SLURM_HOSTFILE here, with the variables that srun gives them
    command("srun", """#!/bin/bash
folder=$(dirname "$0")
case "$1" in --nodes=1) [[ "${*:5}" == *" PATH=$PATH "* ]] && exec "$folder/shell" "${@:4}"; exit 3;; esac
while [[ $1 == --* ]]; do case $1 in *=*) shift;; *) shift 2;; esac; done
export SLURM_NTASKS=$(wc -l < "$SLURM_HOSTFILE")
for ((rank = 0; rank < SLURM_NTASKS; ++rank)); do
  SLURM_PROCID=$rank SLURM_LOCALID=$((rank % 2)) "$@"
done
""")
    hosts(**{"203.0.113.1": {}, "203.0.113.2": {}})
    path = program("import os\nprint(*[os.environ[name] for name in 'RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE "
                   "OMPI_COMM_WORLD_RANK DDL_TRANSPORT DDL_HOST_LIST'.split()])")
    done = ddlrun("--accelerators", 2, sys.executable, path, variables={"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{rank} 4 {rank % 2} 2 {rank} mpi 203.0.113.1:0,1;203.0.113.2:2,3" for rank in range(4)]
