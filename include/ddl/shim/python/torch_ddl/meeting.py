# SPDX-License-Identifier: Apache-2.0
"""How ranks of one host that have nothing but a store of torch in common open a communicator."""

import ctypes
import os
import secrets
import socket
import threading
import time

import pyddl
from pyddl.communicator import Communicator
from pyddl.library import functions


_NEVER = threading.Event()


def _nobody():
    return False


def meet(store, rank, size, seconds, given_up=_NEVER, ended=_nobody):
    """Their communicator. `store`: theirs alone. `given_up`: an event that ends the wait for them. `ended`: says whether the other
    of two has ended. Throws `ValueError` where they are on several hosts."""
    place = ctypes.c_void_p()
    status = open_job(store, rank, size, seconds, ctypes.byref(place), given_up, ended)
    if status != 0:
        raise functions.failure(status)
    return Communicator(place.value)


def open_job(store, rank, size, seconds, place, given_up=_NEVER, ended=_nobody):
    """The same as a function of the library: it returns a status."""
    end = time.monotonic() + seconds
    turn = store.add(f"turns/{rank}", 1)  # a store may outlive a group, and serve another of its name

    def said(key, other):
        """What a rank says. It is looked for again and again, for a store that waits keeps other threads from it."""
        key = f"{turn}/{key}"
        while True:
            has_ended = ended()  # asked first: it may have said it before
            if store.check([key]):
                return store.get(key).decode()
            if has_ended:
                raise pyddl.PeerLost(f"rank {rank} of {size}: rank {other} has ended; see its own error")
            if time.monotonic() > end:
                raise pyddl.Timeout(f"rank {rank} of {size}: rank {other} did not come within {seconds:g} s; see what it does")
            if given_up.wait(0.001):
                raise pyddl.Interrupted(f"rank {rank} of {size}: the program gave up while it waited for rank {other}")

    store.set(f"{turn}/host/{rank}", _host())
    if rank == 0:
        hosts = {said(f"host/{each}", each) for each in range(size)}
        names = " and ".join(sorted(each.split()[0] for each in hosts))
        store.set(f"{turn}/job", names if len(hosts) > 1 else f"={secrets.token_hex(16)}")
    job = said("job", 0)
    if job[0] != "=":
        raise ValueError(f"rank {rank} of {size}: these ranks are on {job}, and meet by themselves on one host only; start all by "
                         "ddlrun -H or mpirun, and for send, recv and groups of some ranks call new_group(backend=\"gloo\")")
    return functions.open_job(f"torch-{job[1:]}".encode(), rank, size, seconds, place)


def announce(store, rank):
    """Tells the ranks of a group, before they meet, which process this is."""
    store.set(f"process/{rank}", f"{_place()} {os.getpid()} {_birth(os.getpid())}")


def announced(store, rank):
    """What a rank has told so."""
    return store.get(f"process/{rank}").decode()


def has_ended(process):
    """Whether an announced process has, as far as can be seen from here."""
    place, number, birth = process.rsplit(" ", 2)
    return place == _place() and _birth(number) != birth


def _place():
    """Where numbers of processes have one meaning."""
    return f"{_host()} {os.readlink('/proc/self/ns/pid')}"


def _birth(number):
    """When a process began, which its number alone does not tell; nothing once it has ended."""
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]


def _host():
    """This host, as no other is called."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{socket.gethostname()} {file.read().strip()}"
