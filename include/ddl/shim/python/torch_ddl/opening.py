# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a process group find each other.

The first group of a process opens pyddl's world: the launcher's ranks, or, where no launcher of ddl or MPI started the process
(torchrun, torch.multiprocessing), those that the script names, if they are all of this host. Each group has messages of its
own, so pyddl's functions may be used beside it.
"""

import atexit
import datetime
import ipaddress
import os
import socket
import sys
import traceback
import urllib.parse

import numpy
import pyddl
from pyddl import process
from torch import cuda
from torch.distributed import TCPStore, get_world_size

from . import NAME
from .group import Group
from .meeting import announce, meet, open_job

_groups = []  # open ones, in the order of their opening
_by_script = False  # whether the script has named the ranks of pyddl's world, and may name others for its next one


def is_launched():
    """Whether ddlrun, or a launcher of MPI, says who the ranks are. torchrun may itself be started by one."""
    if pyddl.initialized():
        return True
    if os.environ.get("TORCHELASTIC_RUN_ID"):
        return False
    if os.environ.get("DDL_TRANSPORT") == "mpi" or "mpi4py.MPI" in sys.modules:
        return True
    return any(os.environ.get(name) for name in ("DDL_JOB", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD"))


def complete(arguments):
    """Fills in what a script leaves out of the arguments of `init_process_group`, by the launcher's word."""
    if str(arguments["backend"]).lower() != NAME:
        raise ValueError(f"init_process_group: the backend is \"{arguments['backend']}\"; name \"{NAME}\" alone, which takes "
                         "tensors of the host and of a GPU")
    url = "env://" if arguments["init_method"] is None else arguments["init_method"]
    if _by_script or not is_launched():
        return
    rank, size = _number("RANK", pyddl.rank()), _number("WORLD_SIZE", pyddl.size())
    for name, said in (("rank", rank), ("world_size", size)):
        if arguments[name] not in (-1, None, said):
            raise ValueError(f"init_process_group, rank {rank}: the script says {name}={arguments[name]}, and the launcher "
                             f"{said}; leave it out, or start as many ranks as the script wants")
    if arguments["store"] is not None or "rank=" in url:
        return
    arguments["rank"], arguments["world_size"] = rank, size
    # who comes early to an address where their last group has met would find the store of that
    if pyddl.initialized() or _nobody_meets_at(url):
        arguments["init_method"], arguments["store"] = None, _store(arguments["timeout"])


def _number(variable, launched):
    """As torch reads it. If that is not what the launcher says by which ddl's ranks meet, `_agree` tells."""
    said = os.environ.get(variable, "")
    return int(said) if said.isdigit() else launched


def _nobody_meets_at(url):
    """Whether an address is missing, or one of many hosts: the old examples of PyTorch have such a one."""
    where = urllib.parse.urlparse(url)
    if where.scheme == "env":
        return not (os.environ.get("MASTER_ADDR") and os.environ.get("MASTER_PORT"))
    try:
        return where.scheme == "tcp" and ipaddress.ip_address(where.hostname or "").is_multicast
    except ValueError:  # a name
        return False


def _store(timeout):
    """A store on a free port of rank 0, of which ddl's own ranks tell each other."""
    world = _world()
    more = {} if timeout is None else {"timeout": timeout}
    place = numpy.zeros(256, numpy.uint8)
    store = None
    if world.rank == 0:
        host = "127.0.0.1" if world.local_size == world.size else socket.gethostname()
        store = TCPStore(host, 0, is_master=True, wait_for_workers=False, **more)
        words = f"{store.port} {host}".encode()
        place[:len(words)] = numpy.frombuffer(words, numpy.uint8)
    world.broadcast(place)
    port, host = place.tobytes().rstrip(b"\0").decode().split()
    return store or TCPStore(host, int(port), is_master=False, **more)


def open_group(options):
    """What torch calls on each member of a new group."""
    global _by_script  # pylint: disable=global-statement
    rank, size = options.group_rank, options.group_size
    if not 0 <= rank < size:
        raise ValueError(f"init_process_group: rank is {rank}, and the world has {size} ranks; pass one from 0 to {size - 1}")
    seconds = options.timeout / datetime.timedelta(seconds=1)
    members = list(options.global_ranks_in_group)
    signs = announce(options.store, rank)
    if not members and not pyddl.initialized() and not is_launched():
        said = "" if os.environ.get("DDL_HOST_LIST") else None  # of a ddlrun around torchrun, DDL_OPTIONS is of its own ranks
        process.start(lambda place: open_job(options.store, rank, size, seconds, place), said)
        _by_script = True
        _choose_device(_world())
        ranks = _world().split(0, rank)
    elif _by_script and not members:  # another world, which may be the first of some of its processes
        with meet(options.store, rank, size, seconds) as world:
            ranks = world.split(0, rank)
    elif not members:
        _agree(_world(), rank, size)
        _choose_device(_world())
        ranks = _world().split(0, rank)
    elif not _by_script and len(members) == get_world_size() and is_launched() and len(members) == _world().size:
        ranks = _world().split(0, rank)
    else:
        ranks = meet(options.store, rank, size, seconds)
    ranks.set_timeout(seconds)
    group = Group(ranks, options.store, signs, options.group_id, seconds, _groups.remove)
    _groups.append(group)
    return group


def _world():
    if not pyddl.initialized():
        pyddl.init()
    return pyddl.world()


def _agree(world, rank, size):
    """All ranks throw, or none does."""
    differ = numpy.array([(world.rank, world.size) != (rank, size)], numpy.int64)
    world.allreduce(differ)
    if differ[0]:
        raise ValueError(f"init_process_group, rank {world.rank}: the script says rank {rank} of {size}, and ddl's ranks are "
                         f"{world.rank} of {world.size}, or it is so on another rank; start as many as the script wants, and "
                         "let it take its rank from the launcher")


def _choose_device(world):
    """The GPU of the local rank becomes the current one, unless the script has chosen."""
    if cuda.is_available() and cuda.current_device() == 0:
        cuda.set_device(world.local_rank % cuda.device_count())


@atexit.register
def _end():
    """At exit, which waits for no other rank. Where the process fails, the others are to hear of it in their calls. A group that
    cannot end is told, and no other waits for it."""
    process.tell_of_failure()
    for group in reversed(_groups[:]):
        try:
            if hasattr(sys, "last_value"):
                group.abort()
            else:
                group.give_up()
            group.shutdown()
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
    pyddl.finalize()
