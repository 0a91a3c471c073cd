# SPDX-License-Identifier: Apache-2.0
"""Which rank runs where: host by host, and on each host a share of the cores; rank file, host list, DDL_OPTIONS."""

import dataclasses
import re
import typing

from .messages import FILE, SHAPE, Problem
from .options import check_host_name


@dataclasses.dataclass
class Placement:
    hosts: typing.List[str]
    ranks_of: typing.Dict[str, typing.List[int]]
    dims: typing.Tuple[int, ...]  # innermost first: ranks of a host, hosts of a rack, racks of an aisle, aisles
    rank_file: str  # its text
    oversubscribed: bool = False

    @property
    def size(self):
        return sum(len(ranks) for ranks in self.ranks_of.values())

    @property
    def host_list(self):
        """DDL_HOST_LIST: `host:rank,rank;host:rank,rank`."""
        return ";".join(f"{host}:{','.join(map(str, self.ranks_of[host]))}" for host in self.hosts)

    def host_of_each_rank(self):
        """The name of a host for each rank, in the order of ranks."""
        places = {rank: host for host, ranks in self.ranks_of.items() for rank in ranks}
        return [places[rank] for rank in sorted(places)]


def shape_of(hosts, nodes, racks, aisles):
    """Hosts of each rack, racks of each aisle, aisles; throws `Problem` unless they make up the number of hosts."""
    if nodes is None:
        if hosts % (racks * aisles):
            raise Problem(SHAPE, f"{hosts} hosts do not fill {racks} racks in each of {aisles} aisles evenly; name a "
                                 f"multiple of {racks * aisles} hosts")
        nodes = hosts // (racks * aisles)
    if nodes * racks * aisles != hosts:
        raise Problem(SHAPE, f"--nodes {nodes} x --racks {racks} x --aisles {aisles} = {nodes * racks * aisles}, and "
                             f"there are {hosts} hosts; make the product equal to them")
    return nodes, racks, aisles


def by_host(hosts, accelerators, cores, shape):
    """Ranks host by host. `cores`: the number of cores of each socket of every host."""
    ranks_of, lines = {}, []
    width = max(map(len, hosts)) + 4
    slots = _slots(accelerators, cores)
    for index, host in enumerate(hosts):
        ranks_of[host] = list(range(index * accelerators, (index + 1) * accelerators))
        for rank, slot in zip(ranks_of[host], slots):
            lines.append(f"rank {rank}={host:<{width}} slot={slot}\n")
    return Placement(hosts, ranks_of, (accelerators, *shape), "".join(lines), accelerators > sum(cores))


def _slots(ranks, cores):
    """For each rank of a host `socket:core` or `socket:first-last`, cores numbered inside the socket.

    Sockets take equal numbers of neighbouring ranks, and the ranks of a socket equal shares of its cores. With more ranks
    than cores, ranks share cores: a slot that does not exist makes mpirun fail.
    """
    slots = []
    for socket, count in enumerate(cores):
        first = ranks * socket // len(cores)
        here = ranks * (socket + 1) // len(cores) - first
        for index in range(here):
            low = index * count // here
            high = max(low, (index + 1) * count // here - 1)
            slots.append(f"{socket}:{low}" if low == high else f"{socket}:{low}-{high}")
    return slots


def of_file(path, settings):
    """What a rank file in Open MPI's form says; comments and blank lines are left out."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as why:
        raise Problem(FILE, f"rank file '{path}' cannot be read: {why}") from None
    host_of = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"rank\s+([0-9]{1,7})\s*=\s*(\S+)(\s+slots?\s*=\s*\S+)?", line)
        if not match or int(match.group(1)) in host_of:
            raise Problem(FILE, f"rank file '{path}', line {number}: '{line}'; each rank has one line, as "
                                "'rank 0=host1 slot=0:0-7'")
        check_host_name(path, match.group(2))
        host_of[int(match.group(1))] = match.group(2)
    if not host_of or sorted(host_of) != list(range(len(host_of))):
        raise Problem(FILE, f"rank file '{path}' has ranks {sorted(host_of)}; it needs a line for each from 0 on")
    hosts = list(dict.fromkeys(host_of[rank] for rank in sorted(host_of)))
    ranks_of = {host: [rank for rank in sorted(host_of) if host_of[rank] == host] for host in hosts}
    counts = {len(ranks) for ranks in ranks_of.values()}
    if len(counts) == 1:
        dims = (counts.pop(), *shape_of(len(hosts), settings.nodes, settings.racks, settings.aisles))
    else:
        for name, said in (("--nodes", settings.nodes is not None), ("--racks", settings.racks > 1), ("--aisles", settings.aisles > 1)):
            if said:
                raise Problem(SHAPE, f"{name}: the hosts of rank file '{path}' have {', '.join(map(str, sorted(counts)))} ranks, which "
                                     "fill no racks; leave it out, or give each host equally many")
        dims = (len(host_of), 1, 1, 1)  # uneven hosts are no box: one dimension holds all ranks
    return Placement(hosts, ranks_of, dims, text)


def ddl_options(settings, placement):
    """DDL_OPTIONS: `-mode p:AxNxRxL ` with that blank, and behind it what --ddlarg adds."""
    return f"-mode {settings.mode}:{'x'.join(map(str, placement.dims))} " + " ".join(settings.ddl_arguments)
