# SPDX-License-Identifier: Apache-2.0
"""Which hosts a run takes: named, of a hostfile, of the LSF or Slurm job, or this one."""

import contextlib
import os
import shutil
import socket
import subprocess

from .messages import COMMAND_LINE, FILE, UNKNOWN_HOST, Problem
from .options import check_host_name


def of_run(settings, environment=os.environ):
    """The names of the hosts, each once, in the order in which they are to hold ranks."""
    if settings.hosts:
        return _each_once("-H", settings.hosts)
    if settings.host_file:
        return _each_once(settings.host_file, _of_file(settings.host_file))
    lsf = environment.get("LSB_MCPU_HOSTS", "").split()
    if lsf:
        return _unique(lsf[0::2])
    if environment.get("SLURM_JOB_NODELIST") and shutil.which("scontrol"):
        names = subprocess.run(["scontrol", "show", "hostnames", environment["SLURM_JOB_NODELIST"]],
                               capture_output=True, text=True, check=False)
        if names.returncode == 0 and names.stdout.split():
            return _unique(names.stdout.split())
    return [socket.gethostname()]


def is_this_host(name):
    """Whether `name` is an address of this host. Throws `Problem` if it is the name of no host at all."""
    if name in _own_names():
        return True
    for family, _, _, _, address in _addresses(name):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:  # of a family that this host may lack
                probe.bind((address[0], 0) + tuple(address[2:]))  # only an address of ours can be bound
                return True
        except OSError:
            pass
    return False


def _own_names():
    """Only the last has to be looked up."""
    yield from ("localhost", socket.gethostname())
    with contextlib.suppress(UnicodeError):  # of a name that no resolver takes
        yield socket.getfqdn()


def check_known(names):
    for name in names:
        if name != socket.gethostname():  # which an MPI does not look up either
            _addresses(name)


def _addresses(name):
    try:
        return socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as why:  # the latter of a part that is empty, or too long
        raise Problem(UNKNOWN_HOST, f"host '{name}' has no address: {why}; correct its name, or add it to /etc/hosts"
                      ) from None


def _of_file(path):
    try:
        with open(path, encoding="utf-8-sig") as file:
            names = [line.split("#")[0].split() for line in file]
    except (OSError, UnicodeDecodeError) as why:
        raise Problem(FILE, f"hostfile '{path}' cannot be read: {why}") from None
    names = [words[0] for words in names if words]  # what follows a name, as `slots=4`, is for other launchers
    if not names:
        raise Problem(FILE, f"hostfile '{path}' names no host; write one a line")
    for name in names:
        check_host_name(path, name)
    return names


def _unique(names):
    return list(dict.fromkeys(names))


def _each_once(source, names):
    for name in names:
        if names.count(name) > 1:
            raise Problem(COMMAND_LINE, f"{source} names host '{name}' more than once; name it once, and ask for "
                                        "several ranks on it with --accelerators")
    return names
