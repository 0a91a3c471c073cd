# SPDX-License-Identifier: Apache-2.0
"""What a host has: its sockets and cores by hwloc, its GPUs by nvidia-smi, and which ddl is installed there.

`python -m ddlrun.hardware` prints the findings as a line of JSON: this is how another host is asked.
"""

import glob
import hashlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import xml.etree.ElementTree

from .version import __version__

MARK = "ddl hardware: "  # what a login script prints before it is not ours


def found():
    """A dictionary: `host machine ddl library cores gpus`, where `cores` has a number for each socket."""
    return {"host": socket.gethostname(), "machine": platform.machine(), "ddl": __version__, "library": _fingerprint(),
            "cores": _cores(), "gpus": _gpus()}


def _cores():
    """Cores of each socket that this process may use."""
    for tool in ("lstopo-no-graphics", "hwloc-ls", "lstopo"):
        if shutil.which(tool):
            text = _output([tool, "--of", "xml", "--restrict", "binding"])
            try:
                topology = xml.etree.ElementTree.fromstring(text)
            except xml.etree.ElementTree.ParseError:
                continue
            packages = [len(package.findall(".//object[@type='Core']"))
                        for package in topology.iter("object") if package.get("type") == "Package"]
            packages = [cores for cores in packages if cores > 0]
            if packages:
                return packages
    return [len(os.sched_getaffinity(0))]


def _gpus():
    """The names of the GPUs that a program started here would see."""
    if not shutil.which("nvidia-smi"):
        return []
    names = [line.strip() for line in _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).splitlines()]
    names = [name for name in names if name]
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        wanted = [word for word in chosen.split(",") if word.strip() not in ("", "-1")]
        names = names[:len(wanted)]
    return names


def library_files(name):
    """Where the shared library `name` may lie, best first: DDL_LIBRARY_PATH, the installed package."""
    folders = [folder for folder in os.environ.get("DDL_LIBRARY_PATH", "").split(os.pathsep) if folder]
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pyddl", "lib"))
    for folder in folders:
        yield from sorted(glob.glob(os.path.join(glob.escape(folder), name + "*")))


def _fingerprint():
    """Tells builds of libddl.so apart; empty where there is none, for ddlrun itself needs none."""
    for path in library_files("libddl.so"):
        with open(path, "rb") as library:
            return hashlib.sha256(library.read()).hexdigest()[:12]
    return ""


def _output(command):
    """What a command that succeeds prints; nvidia-smi prints why it fails, too."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


if __name__ == "__main__":
    sys.stdout.write(MARK + json.dumps(found()) + "\n")
