# SPDX-License-Identifier: Apache-2.0
"""How ranks of one host that have nothing but a store of torch in common open a communicator, and hear of each other's end."""

import ctypes
import os
import re
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


def meet(store, rank, size, seconds, given_up=_NEVER, ended=_nobody, begun=None):
    """Their communicator. `store`: theirs alone. `given_up`: an event that ends the wait for them. `ended`: says whether the other
    of two has ended. `begun`: the moment that `seconds` count from. Throws `ValueError` where they are on several hosts."""
    place = ctypes.c_void_p()
    open_job(store, rank, size, seconds, ctypes.byref(place), given_up, ended, begun)
    return Communicator(place.value)


def open_job(store, rank, size, seconds, place, given_up=_NEVER, ended=_nobody, begun=None):
    """The same as a function of the library: it returns a status, which is that of success."""
    end = (time.monotonic() if begun is None else begun) + seconds
    turn = store.add(f"turns/{rank}", 1)  # a store may outlive a group, and serve another of its name

    def gone(other):
        return pyddl.PeerLost(f"rank {rank} of {size}: rank {other} has ended, or left the group; see its own error")

    def said(key, other):
        """What a rank says. It is looked for again and again, for a store that waits keeps other threads from it."""
        key = f"{turn}/{key}"
        while True:
            has_ended = ended()  # asked first: it may have said it before
            if store.check([key]) and (words := store.get(key).decode()):
                return words
            if has_ended:
                raise gone(other)
            if time.monotonic() > end:
                raise pyddl.Timeout(f"rank {rank} of {size}: rank {other} did not come within {seconds:g} s; see what it does")
            if given_up.wait(0.001):
                raise pyddl.Interrupted(f"rank {rank} of {size}: the program gave up while it waited for rank {other}")

    try:
        store.set(f"{turn}/host/{rank}", _host())
        if rank == 0:
            hosts = {said(f"host/{each}", each) for each in range(size)}
            names = " and ".join(sorted(each.split()[0] for each in hosts))
            store.set(f"{turn}/job", names if len(hosts) > 1 else f"={secrets.token_hex(16)}")
        job = said("job", 0)
        if job[0] != "=":
            raise ValueError(f"rank {rank} of {size}: these ranks are on {job}, and meet by themselves on one host only; start all "
                             "by ddlrun -H or mpirun, and for send, recv and groups of some ranks call new_group(backend=\"gloo\")")
        if ended():  # though it had come before
            raise gone(1 - rank)
        status = functions.open_job(f"torch-{job[1:]}".encode(), rank, size, seconds, place)
        if status != 0:
            why = functions.failure(status)
            raise type(why)(f"rank {rank} of {size}: {_without_job(str(why))}")
        return status
    except (pyddl.Timeout, pyddl.Interrupted, pyddl.PeerLost):
        # who comes later is not to count on this rank, and meets it in its next try
        for key in [f"{turn}/host/{rank}"] + [f"{turn}/job"] * (rank == 0):
            store.set(key, "")
        store.add(f"turns/{rank}", -1)
        raise


def _without_job(words):
    """What the library says of ranks that did not meet, to those who have named no job, and are known to be on one host."""
    words = re.sub(r'shared_memory, rank \d+: (job "[^"]*": )?', "", words)
    return re.sub(r"did not start (within .*?); start all \d+ ranks on this host, .*", r"did not come \1; see what it does", words)


def announce(store, rank):
    """Tells the ranks of a group, before they meet, which process this is, and by which signs they see that it still receives, and
    still sends: two files, until they are closed. Returns those."""
    ends = os.pipe()
    signs = " ".join(f"/proc/{os.getpid()}/fd/{each}={os.fstat(each).st_ino}" for each in ends)
    store.set(f"process/{rank}", f"{_place()} {signs}")
    return [open(each, mode, buffering=0) for each, mode in zip(ends, ("rb", "wb"))]


def announced(store, rank, receives):
    """A function that says whether a rank, as far as can be seen from here, has ended or will not receive any more, or send."""
    place, *signs = store.get(f"process/{rank}").decode().rsplit(" ", 2)
    return (lambda: _is_closed(signs[0 if receives else 1])) if place == _place() else _nobody


def _is_closed(sign):
    path, number = sign.split("=")
    try:
        return os.stat(path).st_ino != int(number)
    except OSError as why:
        return not isinstance(why, PermissionError)  # which says nothing


def _place():
    """Where numbers of processes have one meaning."""
    return f"{_host()} {os.readlink('/proc/self/ns/pid')}"


def _host():
    """This host, as no other is called."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{socket.gethostname()} {file.read().strip()}"
