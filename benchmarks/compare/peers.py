# SPDX-License-Identifier: Apache-2.0
"""The peers: how each is found, built against, and started."""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Missing(Exception):
    """A peer cannot be had here; the words say what it needs."""


@dataclasses.dataclass
class Peer:
    """A library to compare with. `compiler` is its MPI's C++ wrapper, `launcher` what starts its ranks."""
    name: str
    compiler: str
    launcher: list
    crowded: list = dataclasses.field(default_factory=list)  # the launcher's words for more ranks than cores
    environment: dict = dataclasses.field(default_factory=dict)
    source: str = "mpi"
    package: str = ""

    def words(self, ranks):
        words = list(self.launcher)
        if ranks > os.cpu_count():
            words += self.crowded
        return words + ["-n", str(ranks)]


PEERS = {each.name: each for each in [
    # `--bind-to none`: the program binds its ranks itself, under every peer alike
    Peer("openmpi", "mpicxx.openmpi", ["mpirun.openmpi", "--bind-to", "none"], ["--oversubscribe"],
         {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}, package="libopenmpi-dev openmpi-bin"),
    Peer("mpich", "mpicxx.mpich", ["mpirun.mpich", "-bind-to", "none"], package="libmpich-dev mpich"),
]}


def built(peer, folder, element, op, flags):
    """The program for `peer`, made or made again."""
    if shutil.which(peer.compiler) is None:
        raise Missing(f"{peer.name}: there is no {peer.compiler}; install {peer.package}")
    tree = folder / peer.name
    target = f"compare_{element}_{op}"
    tree.mkdir(parents=True, exist_ok=True)
    configure = ["cmake", "-S", ROOT, "-B", tree, f"-DMPI_CXX_COMPILER={peer.compiler}", f"-DCMAKE_CXX_FLAGS={flags}",
                 "-DCMAKE_BUILD_TYPE=", "-DDDL_BUILD_TESTS=OFF", "-DDDL_BUILD_EXAMPLES=OFF",
                 "-DDDL_BUILD_BENCHMARKS=ON", f"-DDDL_COMPARE_PEER={peer.source}"]
    if shutil.which("ninja") and not (tree / "Makefile").exists():
        configure += ["-G", "Ninja"]
    log = tree / "build.log"
    with log.open("w") as output:
        for command in (configure, ["cmake", "--build", tree, "--target", target]):
            if subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode != 0:
                sys.stderr.write(log.read_text()[-4000:])
                raise Missing(f"{peer.name}: the program could not be built; see {log}")
    return tree / "benchmarks" / "compare" / target
