# SPDX-License-Identifier: Apache-2.0
"""Which MPI is there, and the command that starts the ranks with it."""

import dataclasses
import os
import shlex
import shutil
import subprocess

from . import environment as environments
from . import hardware
from .messages import NO_MPI, Problem

LINKS = 2  # TCP links to each peer: over one, Open MPI moves bytes in one direction at a time

_COMMANDS = {
    "openmpi": ("mpirun", "mpirun.openmpi", "mpiexec.openmpi", "orterun"),
    "spectrum": ("mpirun",),
    "mpich": ("mpiexec.hydra", "mpirun.mpich", "mpirun", "mpiexec"),
    "srun": ("srun",),
}


@dataclasses.dataclass(frozen=True)
class Launcher:
    kind: str  # openmpi, spectrum, mpich or srun
    path: str


def find(wanted, environment=os.environ):
    """The launcher of that kind; for "auto" srun in a Slurm job, then that of the MPI which libddl_pack.so was built with,
    then `mpirun`, then any. `None` if there is none."""
    if wanted != "auto":
        choices = [(wanted, name) for name in _COMMANDS[wanted]]
    else:
        built_with = _mpi_of_library()
        choices = [("srun", "srun")] if environment.get("SLURM_JOB_ID") else []
        choices += [(built_with, name) for name in _COMMANDS.get(built_with, ())]
        choices += [(kind, "mpirun") for kind in ("openmpi", "spectrum", "mpich")]
        choices += [(kind, name) for kind in ("openmpi", "mpich") for name in _COMMANDS[kind]]
    kinds = {}
    for kind, name in choices:
        path = shutil.which(name)
        if path and path not in kinds:
            kinds[path] = "srun" if kind == "srun" else _kind_of(path)
        if path and kinds[path] == kind:
            return Launcher(kind, path)
    return None


def required(wanted):
    launcher = find(wanted)
    if launcher is None:
        what = "an MPI (Open MPI, MPICH, Spectrum MPI, or srun in a Slurm job)" if wanted == "auto" else wanted
        raise Problem(NO_MPI, f"the ranks are to be started by {what}, and PATH has none; install it, or name another by --launcher")
    return launcher


def _kind_of(path):
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = said.stdout + said.stderr
    for kind, names in (("spectrum", ("Spectrum MPI",)), ("openmpi", ("Open MPI", "OpenRTE", "PRRTE")),
                        ("mpich", ("HYDRA", "Intel(R) MPI"))):
        if any(name in words for name in names):
            return kind
    return ""


def _mpi_of_library():
    for path in hardware.library_files("libddl_pack.so"):
        with open(path, "rb") as library:
            content = library.read()
        for kind, soname in (("mpich", b"libmpich.so"), ("mpich", b"libmpi.so.12"), ("spectrum", b"libmpi_ibm.so"),
                             ("openmpi", b"libmpi.so.")):
            if soname in content:
                return kind
    return ""


@dataclasses.dataclass
class Command:
    words: list
    environment: dict  # what it needs beside the environment of ddlrun; None: what it must not find there
    files: dict  # path: text, to be written before it starts

    def __str__(self):
        """For the shell, in one line."""
        variables = [f"-u {name}" for name, value in self.environment.items() if value is None]
        variables += [f"{name}={shlex.quote(value)}" for name, value in self.environment.items() if value is not None]
        return " ".join((["env", *variables] if variables else []) + [shlex.quote(word) for word in self.words])


def command(launcher, settings, placement, folder, program):
    """What starts `program` on the ranks of `placement`. Files that it reads lie in `folder`."""
    run = environments.of_run(settings, placement)
    run["DDL_TRANSPORT"] = "mpi"
    run.update(environments.meeting_point(placement.hosts[0]))
    asked = environments.asked_for(settings)
    run = {name: value for name, value in run.items() if name not in asked}
    program = environments.naming_ranks(launcher.kind, settings, placement, program)
    make = {"openmpi": _open_mpi, "spectrum": _open_mpi, "mpich": _hydra, "srun": _srun}[launcher.kind]
    made = make(launcher, settings, placement, folder, run, program)
    if not settings.ddl_options and "DDL_OPTIONS" in os.environ and "DDL_OPTIONS" not in asked:
        made.environment["DDL_OPTIONS"] = None
    return made


def _open_mpi(launcher, settings, placement, folder, run, program):
    spectrum = launcher.kind == "spectrum"
    words = [launcher.path]
    for name in environments.kept(settings):
        words += ["-x", name]
    if spectrum:
        words += ["-disable_gdr", "-gpu"] + (["-tcp"] if settings.tcp else [])
    else:
        words += ["--mca", "btl_tcp_links", str(LINKS)]
        words += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self,vader"] if settings.tcp else []
    words += ["-mca", "plm_rsh_num_concurrent", str(len(placement.hosts))]
    if settings.remote_shell:
        words += ["-mca", "plm_rsh_agent", settings.remote_shell]
    if settings.tag_output:
        words += ["--tag-output"]
    words += settings.mpi_arguments
    files = {}
    rank_file = settings.rank_file
    if rank_file is None:
        rank_file = os.path.join(folder, "RANKFILE")
        files[rank_file] = placement.rank_file
    words += ["--oversubscribe"] if placement.oversubscribed else []
    words += ["--rankfile", rank_file, "-n", str(placement.size)]
    for name, value in run.items():
        words += ["-x", f"{name}={value}"]
    for word in settings.variables:
        words += ["-x", word]
    return Command(words + program, {}, files)


def _hydra(launcher, settings, placement, folder, run, program):
    words = [launcher.path]  # which passes its whole environment on
    own = {}
    if settings.tcp:
        words += ["-genv", "FI_PROVIDER", "tcp"]
    if settings.remote_shell:
        shell, *more = shlex.split(settings.remote_shell)
        words += ["-launcher", "ssh", "-launcher-exec", shell]
        own = {"HYDRA_LAUNCHER_EXTRA_ARGS": " ".join(more)} if more else {}
    if settings.tag_output:
        words += ["-prepend-rank"]
    words += settings.mpi_arguments
    machine_file = os.path.join(folder, "MACHINEFILE")
    words += ["-f", machine_file, "-n", str(placement.size)]
    for name, value in {**run, **_given(settings)}.items():
        words += ["-genv", name, value]
    return Command(words + program, own, {machine_file: _machine_file(placement)})


def _machine_file(placement):
    """`host:ranks` for each run of neighbouring ranks on one host: Hydra fills them in this order."""
    lines = []
    for host in placement.host_of_each_rank():
        if lines and lines[-1][0] == host:
            lines[-1][1] += 1
        else:
            lines.append([host, 1])
    return "".join(f"{host}:{count}\n" for host, count in lines)


def _srun(launcher, settings, placement, folder, run, program):
    host_file = os.path.join(folder, "HOSTFILE")  # a host for each rank: what SLURM_HOSTFILE is to Slurm
    words = [launcher.path, "--nodes", str(len(placement.hosts)), "--ntasks", str(placement.size),
             "--distribution", "arbitrary", "--kill-on-bad-exit=1", "--export=ALL"]
    if settings.tag_output:
        words += ["--label"]
    words += settings.mpi_arguments
    # srun passes its own environment on, and its --export has no way to write a comma
    files = {host_file: "".join(host + "\n" for host in placement.host_of_each_rank())}
    return Command(words + program, {"SLURM_HOSTFILE": host_file, **run, **_given(settings)}, files)


def _given(settings):
    return {name: value for name, value in environments.asked_for(settings).items() if value is not None}
