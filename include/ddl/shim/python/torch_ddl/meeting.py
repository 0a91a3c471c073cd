# SPDX-License-Identifier: Apache-2.0
"""How ranks of one host that have nothing but a store of torch in common open a communicator."""

import ctypes
import secrets
import socket
import threading
import time

import pyddl
from pyddl.communicator import Communicator
from pyddl.library import functions


_NEVER = threading.Event()


def meet(store, rank, size, seconds, given_up=_NEVER):
    """Their communicator. `store`: theirs alone. `given_up`: an event that ends the wait for them. Throws `ValueError` where they
    are on several hosts."""
    place = ctypes.c_void_p()
    status = open_job(store, rank, size, seconds, ctypes.byref(place), given_up)
    if status != 0:
        raise functions.failure(status)
    return Communicator(place.value)


def open_job(store, rank, size, seconds, place, given_up=_NEVER):
    """The same as a function of the library: it returns a status."""
    end = time.monotonic() + seconds
    turn = store.add(f"turns/{rank}", 1)  # a store may outlive a group, and serve another of its name

    def said(key):
        """What a rank says. It is looked for again and again, for a store that waits keeps other threads from it."""
        key = f"{turn}/{key}"
        while not store.check([key]):
            if time.monotonic() > end:
                raise pyddl.Timeout(f"rank {rank} of {size}: the others did not come, {key} is missing; see what they do")
            if given_up.wait(0.001):
                raise pyddl.Interrupted(f"rank {rank} of {size}: the program gave up while it waited for {key}")
        return store.get(key).decode()

    store.set(f"{turn}/host/{rank}", _host())
    if rank == 0:
        hosts = {said(f"host/{each}") for each in range(size)}
        names = " and ".join(sorted(each.split()[0] for each in hosts))
        store.set(f"{turn}/job", names if len(hosts) > 1 else f"={secrets.token_hex(16)}")
    job = said("job")
    if job[0] != "=":
        raise ValueError(f"rank {rank} of {size}: these ranks are on {job}, and meet by themselves on one host only; start all by "
                         "ddlrun -H or mpirun, and for send, recv and groups of some ranks call new_group(backend=\"gloo\")")
    return functions.open_job(f"torch-{job[1:]}".encode(), rank, size, seconds, place)


def _host():
    """This host, as no other is called."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{socket.gethostname()} {file.read().strip()}"
