# SPDX-License-Identifier: Apache-2.0
"""Command lines as users of ddlrun write them, and the mpirun command that comes of each. Nothing is started."""

import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys

import pytest

OPEN_MPI = "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n"
SPECTRUM = "#!/bin/sh\necho 'mpirun (IBM Spectrum MPI) 10.3.1'\n"
HYDRA = "#!/bin/sh\necho 'HYDRA build details:'\n"


@pytest.fixture
def built_with(tmp_path, environment):
    """Makes ddlrun find a library that was built with the MPI of this shared object."""
    def write(soname):
        folder = tmp_path / "lib"
        folder.mkdir(exist_ok=True)
        (folder / "libddl_pack.so").write_text(soname)
        environment["DDL_LIBRARY_PATH"] = str(folder)
    return write


@pytest.fixture
def dry_run(ddlrun, command, built_with):
    """The words of the command that ddlrun would run, beside an Open MPI that the library was built with."""
    command("mpirun", OPEN_MPI)
    built_with("libmpi.so.40")

    def run(line, **more):
        done = ddlrun("--dry_run", *shlex.split(line), **more)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == 1 and lines[0].startswith("+ "), done.stdout
        return shlex.split(lines[0][2:])
    return run


def values(words, option):
    """What follows each `option` among these words."""
    return [words[index + 1] for index, word in enumerate(words[:-1]) if word == option]


def variables(words):
    return dict(word.split("=", 1) for word in values(words, "-x") if "=" in word)


def rank_file(words):
    return pathlib.Path(values(words, "--rankfile")[0]).read_text().splitlines()


def test_two_hosts(dry_run):
    words = dry_run("-H host1,host2 --accelerators 4 python example.py")
    assert words[-2:] == ["python", "example.py"]
    assert values(words, "-n") == ["8"]
    assert variables(words)["DDL_OPTIONS"] == "-mode p:4x2x1x1 "
    assert variables(words)["DDL_HOST_LIST"] == "host1:0,1,2,3;host2:4,5,6,7"
    assert variables(words)["DDL_HOST_PORT"] == "2200"
    assert variables(words)["DDL_TRANSPORT"] == "mpi"
    assert {"PATH", "PYTHONPATH"} <= set(values(words, "-x"))
    assert values(words, "plm_rsh_num_concurrent") == ["2"]
    assert values(words, "btl_tcp_links") == ["2"]
    assert not {"-disable_gdr", "-gpu"} & set(words)


def test_the_rank_file_has_open_mpis_form(dry_run):
    lines = rank_file(dry_run("-H host1,host2 --accelerators 1 python example.py"))
    assert len(lines) == 2
    for rank, line in enumerate(lines):
        assert re.fullmatch(rf"rank {rank}=host{rank + 1} +slot=0:\d+(-\d+)?", line)


def test_words_for_the_program_stay_its_own(dry_run):
    words = dry_run("-H a,b --accelerators 1 python -u train.py --dist-backend ddl -H x --nodes 7 --dist-url env:// /data")
    assert words[-10:] == "python -u train.py --dist-backend ddl -H x --nodes 7 --dist-url env:// /data".split()[-10:]
    assert variables(words)["DDL_OPTIONS"] == "-mode p:1x2x1x1 "


def test_two_dashes_end_the_options(dry_run):
    assert dry_run("-H a,b --accelerators 1 -- python x -- y")[-4:] == ["python", "x", "--", "y"]


def test_variables_and_accelerators(dry_run):
    words = dry_run("-x WORLD_SIZE=16 -x MASTER_ADDR=a1 -x MASTER_PORT=1234 -accelerators 4 -H a1,a2,a3,a4 python gcn.py "
                    "--accperrank=4 --epochs=100")
    assert values(words, "-n") == ["16"]
    assert variables(words)["MASTER_ADDR"] == "a1"
    assert [word for word in values(words, "-x") if word.startswith("MASTER_PORT")] == ["MASTER_PORT=1234"]
    assert " WORLD_SIZE=" not in " ".join(words[words.index("sh"):])  # what the user sets is not set again
    assert words[-2:] == ["--accperrank=4", "--epochs=100"]


def test_racks_and_aisles(dry_run):
    hosts = ",".join(f"n{i}" for i in range(144))
    words = dry_run(f"-v --nodes 18 --racks 4 --aisles 2 --accelerators 6 -H {hosts} python train.py")
    assert variables(words)["DDL_OPTIONS"] == "-mode p:6x18x4x2 "
    assert values(words, "-n") == ["864"]
    assert variables(words)["DDL_HOST_LIST"].startswith("n0:0,1,2,3,4,5;n1:6,7,8,9,10,11;")


def test_variables_of_the_libraries_reach_all_hosts(dry_run):
    names = {"DL_COMM_DEFAULT_NTHREADS": "4", "DDL_RANKS_PER_NODE": "1"}
    words = dry_run("-H h1,h2 python x", variables=names)
    assert set(names) <= set(values(words, "-x"))


def test_no_ddloptions(dry_run):
    words = dry_run("--no_ddloptions -H h1,h2 -accelerators 2 python mnist-init.py")
    assert "DDL_OPTIONS" not in variables(words)
    assert "DDL_HOST_LIST" in variables(words)


def test_no_ddloptions_hides_even_those_of_our_own_environment(ddlrun, command, built_with):
    """Which mpirun passes on."""
    command("mpirun", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4.1.4' || echo \"found ${DDL_OPTIONS-none}\"\n")
    built_with("libmpi.so.40")
    line = ("--launcher", "openmpi", "-accelerators", 2)
    for more, found in (((), "mine"), (("--no_ddloptions",), "none"), (("--no_ddloptions", "-x", "DDL_OPTIONS"), "mine")):
        done = ddlrun(*line, *more, "true", variables={"DDL_OPTIONS": "mine"})
        assert done.stdout == f"found {found}\n", done.stderr
        shown = ddlrun("--dry_run", *line, *more, "true", variables={"DDL_OPTIONS": "mine"}).stdout
        assert ("-u DDL_OPTIONS " in shown) == (found == "none")
        done = subprocess.run(shown[2:], shell=True, env={**os.environ, "DDL_OPTIONS": "mine"}, capture_output=True, text=True, timeout=300,
                              check=False)
        assert done.stdout == f"found {found}\n", done.stderr


def test_tcp_and_mpi_words(dry_run):
    words = dry_run("--tcp --H h1,h2 --accelerators 1 --mpiarg -pami_noib --mpiarg '-x NCCL_DEBUG=INFO --bind-to none' python x")
    assert "-pami_noib" in words
    assert "NCCL_DEBUG=INFO" in values(words, "-x")
    assert values(words, "--bind-to") == ["none"]
    assert values(words, "btl") == ["tcp,self,vader"]


def test_mode_and_options_for_ddl(dry_run):
    words = dry_run("-m r --ddlarg '-dump_iter 100' -ddloption '-dev_sync 1' -H h1,h2 -accelerators 2 python x")
    assert variables(words)["DDL_OPTIONS"] == "-mode r:2x2x1x1 -dump_iter 100 -dev_sync 1"


@pytest.mark.parametrize("name, option", [
    (names, option) for option in ("{} r", "{} -dump_iter", "{}", "{} RANKFILE", "{} h1,h2", "{} HOSTFILE", "{} 1")
    for names in {"{} r": ("m", "mode"), "{} -dump_iter": ("ddlarg", "ddloption"), "{}": ("no_ddloptions", "tcp", "v"),
                  "{} RANKFILE": ("rf", "rankfile"), "{} h1,h2": ("H", "host"), "{} HOSTFILE": ("hostfile",),
                  "{} 1": ("aisles", "racks")}[option]])
@pytest.mark.parametrize("dashes", ["-", "--"])
def test_every_alias_takes_one_or_two_dashes(dry_run, tmp_path, name, option, dashes):
    (tmp_path / "RANKFILE").write_text("rank 0=h1 slot=0:0\nrank 1=h2 slot=0:0\n")
    (tmp_path / "HOSTFILE").write_text("h1\nh2 slots=4\n# none\n\n", encoding="utf-8-sig")  # as editors of Windows write it
    places = "" if name in ("rf", "rankfile") else "-accelerators 1"
    places += "" if name in ("H", "host", "hostfile", "rf", "rankfile") else " -H h1,h2"
    words = dry_run(f"{places} {option.format(dashes + name)} python x")
    assert variables(words)["DDL_HOST_LIST"] == "h1:0;h2:1"
    assert words[-2:] == ["python", "x"]


def test_a_rank_file_of_ones_own(dry_run, tmp_path):
    (tmp_path / "mine").write_text("rank 0=b slot=0:0-7\nrank 1=a slot=0:0-7  # comment\nrank 2=b slot=1:0-7\n\nrank 3=a slot=1:0\n")
    words = dry_run("-rf mine python x")
    assert values(words, "--rankfile") == ["mine"]
    assert variables(words)["DDL_HOST_LIST"] == "b:0,2;a:1,3"
    assert variables(words)["DDL_OPTIONS"] == "-mode p:2x2x1x1 "


def test_uneven_rank_files_are_one_dimension(dry_run, tmp_path):
    (tmp_path / "mine").write_text("rank 0=a slot=0:0\nrank 1=a slot=0:1\nrank 2=b slot=0:0\n")
    assert variables(dry_run("-rf mine python x"))["DDL_OPTIONS"] == "-mode p:3x1x1x1 "


def test_spectrum_mpi_gets_its_own_words(dry_run, command):
    command("mpirun", SPECTRUM)
    words = dry_run("--launcher spectrum -H h1,h2 -accelerators 4 --tcp python x")
    assert {"-disable_gdr", "-gpu", "-tcp"} <= set(words)
    assert "btl_tcp_links" not in words


def test_hydra(dry_run, command, tmp_path):
    command("mpiexec.hydra", HYDRA)
    (tmp_path / "mine").write_text("rank 0=b slot=0:0\nrank 1=a slot=0:0\nrank 2=a slot=0:1\nrank 3=b slot=0:0\n")
    words = dry_run("--launcher mpich -rf mine --tag_output python x")
    given = {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "-genv"}
    assert given["DDL_OPTIONS"] == "-mode p:2x2x1x1 "
    assert pathlib.Path(values(words, "-f")[0]).read_text() == "b:1\na:2\nb:1\n"
    assert "-prepend-rank" in words and "--rankfile" not in words
    assert "OMPI_COMM_WORLD_RANK=$PMI_RANK" in " ".join(words)


def test_a_remote_shell_of_several_words(dry_run, command):
    command("mpiexec.hydra", HYDRA)
    line = "--remote_shell 'ssh -p 2222 -q' -H h1,h2 -accelerators 1 python x"
    assert values(dry_run(line), "plm_rsh_agent") == ["ssh -p 2222 -q"]
    words = dry_run("--launcher mpich " + line)
    assert values(words, "-launcher-exec") == ["ssh"] and words[:2] == ["env", "HYDRA_LAUNCHER_EXTRA_ARGS=-p 2222 -q"]


@pytest.mark.parametrize("soname, name, says", [("libmpich.so.12", "mpiexec.hydra", HYDRA), ("libmpi.so.12", "mpiexec.hydra", HYDRA), ("libmpi_ibm.so.3", "mpirun", SPECTRUM),
                                                ("libmpi.so.40", "mpirun", OPEN_MPI)])
def test_the_launcher_is_of_the_mpi_that_the_library_was_built_with(dry_run, command, built_with, soname, name, says):
    built_with(soname)
    path = command(name, says)
    assert dry_run("-H h1,h2 -accelerators 1 python x")[0] == str(path)


def test_slurm(dry_run, command):
    command("srun", "#!/bin/sh\n")
    command("scontrol", "#!/bin/sh\nprintf 'n1\\nn2\\n'\n")
    words = dry_run("-accelerators 2 -x A=1,2 python x", variables={"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"})
    assert words[0] == "env"
    given = dict(word.split("=", 1) for word in words[1:words.index(next(w for w in words if w.endswith("/srun")))])
    assert given["DDL_OPTIONS"] == "-mode p:2x2x1x1 " and given["A"] == "1,2"
    assert pathlib.Path(given["SLURM_HOSTFILE"]).read_text() == "n1\nn1\nn2\nn2\n"
    assert values(words, "--ntasks") == ["4"]


def test_hosts_of_an_lsf_job(dry_run):
    words = dry_run("-accelerators 2 python x", variables={"LSB_MCPU_HOSTS": "c1 16 c2 16", "LSB_JOBID": "9"})
    assert variables(words)["DDL_HOST_LIST"] == "c1:0,1;c2:2,3"
    assert {"LSB_JOBID", "LSB_MCPU_HOSTS"} <= set(values(words, "-x"))


def test_one_host_needs_no_mpi(ddlrun):
    done = ddlrun("--dry_run", "--accelerators", "2", "python", "x", variables={"PATH": "/nowhere"})
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 2
    for rank, line in enumerate(lines):
        words = shlex.split(line)
        assert words[:2] == ["+", "env"] and words[-2:] == ["python", "x"]
        assert {f"RANK={rank}", "WORLD_SIZE=2", "DDL_TRANSPORT=shared_memory", "DDL_OPTIONS=-mode p:2x1x1x1 "} <= set(words)


def test_one_other_host(dry_run):
    words = dry_run("-H no-such-host.invalid -accelerators 2 python x")
    assert variables(words)["DDL_HOST_LIST"] == "no-such-host.invalid:0,1"


@pytest.mark.parametrize("room", [0, 20, 200])
def test_no_room_for_temporary_files(ddlrun, command, built_with, room):
    """None at all; not for the rank file; not for the log."""
    command("mpirun", OPEN_MPI)
    built_with("libmpi.so.40")
    done = ddlrun("--dry_run", "-H", "host1,host2", "--accelerators", 2, "python", "x",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    if room == 200:
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert len(rank_file(shlex.split(done.stdout))) == 4
    else:
        assert done.returncode == 1 and done.stdout == ""
        first, second = done.stderr.splitlines()
        assert re.match(r"\[ERROR DDL-2-8\] the rank file cannot be written: .*; set TMPDIR to a folder that has room", first)
        assert second.startswith("No log could be written: ")


def test_gpus_are_counted_where_nothing_is_said(dry_run, command):
    command("nvidia-smi", "#!/bin/sh\nprintf 'GPU A\\nGPU A\\nGPU A\\n'\n")
    assert values(dry_run("-H h1,h2 python x"), "-n") == ["6"]
    assert values(dry_run("-H h1,h2 python x", variables={"CUDA_VISIBLE_DEVICES": "1,2"}), "-n") == ["4"]
    command("lstopo-no-graphics", """#!/bin/sh\necho '<t><object type="Package"><object type="Core"/></object></t>'\n""")
    command("nvidia-smi", "#!/bin/sh\necho 'No devices were found'; echo 'and why'; exit 6\n")
    assert values(dry_run("-H h1,h2 python x"), "-n") == ["2"]  # one for the core of each


@pytest.mark.parametrize("line, said", [
    ("", "no program to run"),
    ("-H", "-H: its HOST,HOST is missing"),
    ("--nosuch python", "no option '--nosuch'"),
    ("-v --", "no program to run"),
    ("-m q python x", "-m: no mode 'q'"),
    ("--accelerators 0 python x", "--accelerators: '0' is no number"),
    ("--accelerators -3 python x", "--accelerators: '-3' is no number"),
    ("--accelerators 99999999999 python x", "is no number from 1"),
    ("-H h1,,h2 python x", "-H: '' is no name of a host"),
    ("-H '-oProxyCommand=x,h2' python x", "is no name of a host"),
    ("-H h1:4,h2:4 python x", "-H: 'h1:4' has a colon; write how many ranks a host has by --accelerators"),
    ("-H h1,h1 python x", "names host 'h1' more than once"),
    ("-H h1 -hostfile f python x", "use one of them"),
    ("-H h1,h2,h3 --racks 2 python x", "do not fill 2 racks"),
    ("-H h1,h2 --nodes 3 python x", "--nodes 3 x --racks 1 x --aisles 1 = 3, and there are 2 hosts"),
    ("-hostfile nosuch python x", "hostfile 'nosuch' cannot be read"),
    ("-rf nosuch python x", "rank file 'nosuch' cannot be read"),
    ("-rf bad python x", "rank file 'bad', line 1"),
    ("-rf uneven -H h1,h2 python x", "-rf and -H: the rank file names the hosts and their ranks; use one of the two"),
    ("-hostfile f --rankfile uneven python x", "-rf and --hostfile: the rank file"),
    ("-rf uneven -accelerators 2 python x", "-rf and --accelerators: the rank file"),
    ("-rf uneven -nodes 2 python x", "--nodes: the hosts of rank file 'uneven' have 1, 2 ranks, which fill no racks; leave"),
    ("-rf uneven -racks 2 python x", "--racks: the hosts of rank file 'uneven' have 1, 2 ranks"),
    ("-rf uneven -aisles 2 python x", "--aisles: the hosts of rank file 'uneven' have 1, 2 ranks"),
    ("-rf even -racks 3 python x", "2 hosts do not fill 3 racks"),
    ("-x =3 python x", "-x: '=3' is neither"),
    ("--mpiarg \"'\" python x", "cannot be split into words"),
    ("--remote_shell \"'\" python x", "cannot be split into words"),
    ("--remote_shell ' ' python x", "--remote_shell: ' ' names no command"),
    ("--launcher lam python x", "no launcher 'lam'"),
    ("--launcher local -H h1,h2 python x", "--launcher local starts ranks on this host only"),
    ("--tcp=1 python x", "--tcp=1: this option takes no value"),
])
def test_a_wrong_line_is_told(ddlrun, tmp_path, line, said):
    (tmp_path / "bad").write_text("rank one=h1\n")
    (tmp_path / "even").write_text("rank 0=h1\nrank 1=h2\n")
    (tmp_path / "uneven").write_text("rank 0=h1\nrank 1=h2\nrank 2=h1\n")
    done = ddlrun("--dry_run", *shlex.split(line))
    message, log = done.stderr.splitlines()[:2]
    assert done.returncode == 1 and done.stdout == ""
    assert re.match(r"\[ERROR DDL-2-\d+\] ", message) and said in message
    path = re.search(r"(\S+/DDLRUN/DDLRUN\.\w{12}/ddlrun\.log)", log).group(1)
    assert message in pathlib.Path(path).read_text()


def test_words_that_are_not_utf8(ddlrun):
    odd = os.fsdecode(b"\xff\xfe")
    done = ddlrun("--accelerators", 1, odd, variables={"PYTHONUTF8": "1"})
    message, log = done.stderr.splitlines()[:2]
    assert done.returncode == 1 and message.startswith(r"[ERROR DDL-2-9] no program '\udcff\udcfe' that can be run")
    path = re.search(r"(\S+/ddlrun\.log)", log).group(1)
    assert message in pathlib.Path(path).read_text()
    for more in ((), ("-H", "h1,h2")):
        done = ddlrun("--dry_run", *more, "--accelerators", 1, "echo", odd, variables={"PYTHONUTF8": "1"}, errors="surrogateescape")
        assert done.returncode == 0 and done.stdout.endswith(f" echo '{odd}'\n"), done.stderr  # a line that can be run


def test_help_names_every_option(ddlrun):
    text = ddlrun("-h").stdout
    from ddlrun.options import OPTIONS
    for option in OPTIONS:
        for name in option.names:
            assert "-" in name or f"-{name}" in text
    assert ddlrun("--version").stdout.startswith("ddlrun ")


def test_sockets_are_those_that_hwloc_finds(command, environment):
    command("lstopo-no-graphics", """#!/bin/sh
echo '<topology><object type="Machine">'
for cores in 3 0 2; do
  echo '<object type="Package"><object type="L3Cache">'
  for core in $(seq $cores); do echo '<object type="Core"/>'; done
  echo '</object></object>'
done
echo '</object></topology>'
""")
    done = subprocess.run([sys.executable, "-m", "ddlrun.hardware"], env=environment, capture_output=True, text=True, timeout=300,
                          check=True)
    assert json.loads(done.stdout.partition(": ")[2])["cores"] == [3, 2]  # of sockets that this process may use
