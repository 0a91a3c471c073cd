# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a run find in their environment."""

import os
import secrets
import socket

from . import placement as placements

HOST_PORT = "2200"
KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV", "LSB_JOBID",
        "LSB_MCPU_HOSTS", "DDL_LIBRARY_PATH", "DDL_TIMEOUT", "DDL_DEBUG", "DDL_GROUP_SIZE", "DDL_RANKS_PER_NODE",
        "DDL_MAPPED_ARRAYS", "DL_COMM_DEFAULT_NTHREADS", "DL_COMM_DEFAULT_PREC_LEVEL", "DL_COMM_PIPELINE_CHUNK_KB",
        "DL_COMM_NUM_CUDA_STREAMS")


def asked_for(settings):
    """The variables of `-x`: name and value, where the value is None for one that is passed as it is here."""
    pairs = {}
    for word in settings.variables:
        name, equals, value = word.partition("=")
        pairs[name] = value if equals else None
    return pairs


def of_run(settings, placement):
    """What is the same for all ranks. Without `-x`: what the user asks for comes on top of it."""
    variables = {"DDL_HOST_PORT": HOST_PORT, "DDL_HOST_LIST": placement.host_list}
    if settings.ddl_options:
        variables["DDL_OPTIONS"] = placements.ddl_options(settings, placement)
    return variables


def kept(settings, environment=os.environ):
    """Names of variables that every host gets as they are here."""
    asked = asked_for(settings)
    return [name for name in KEPT if environment.get(name) and name not in asked]


def meeting_point(address):
    """MASTER_ADDR and MASTER_PORT, for programs whose ranks meet by themselves. The port is free on this host now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return {"MASTER_ADDR": address, "MASTER_PORT": str(probe.getsockname()[1])}


def of_local_ranks(settings, placement, environment=os.environ):
    """The whole environment of each rank, where ddlrun starts the ranks itself. ddl's ranks meet by DDL_JOB."""
    size = placement.size
    common = dict(environment)
    for name in list(common):  # what an mpirun around this one told ddlrun is not true of the ranks
        if name.startswith(("OMPI_COMM_WORLD_", "PMIX_", "PMI_", "MPI_LOCAL")):
            del common[name]
    if not settings.ddl_options:
        common.pop("DDL_OPTIONS", None)
    common.update(of_run(settings, placement))
    common.update(meeting_point("127.0.0.1"))
    common.update(DDL_JOB=f"ddlrun-{os.getpid()}-{secrets.token_hex(8)}", DDL_TRANSPORT="shared_memory")
    for name, value in asked_for(settings).items():
        value = environment.get(name) if value is None else value
        if value is not None:
            common[name] = value
    ranks = []
    for rank in range(size):
        own = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size,
               "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size, "OMPI_COMM_WORLD_LOCAL_RANK": rank,
               "OMPI_COMM_WORLD_LOCAL_SIZE": size}
        ranks.append({**common, **{name: str(value) for name, value in own.items()}})
    return ranks


# What each launcher calls the numbers of a rank.
_OPEN_MPI = {"RANK": "OMPI_COMM_WORLD_RANK", "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
             "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE"}
_NUMBERS = {
    "openmpi": _OPEN_MPI,
    "spectrum": _OPEN_MPI,
    "mpich": {"RANK": "PMI_RANK", "WORLD_SIZE": "PMI_SIZE", "LOCAL_RANK": "MPI_LOCALRANKID",
              "LOCAL_WORLD_SIZE": "MPI_LOCALNRANKS"},
    "srun": {"RANK": "SLURM_PROCID", "WORLD_SIZE": "SLURM_NTASKS", "LOCAL_RANK": "SLURM_LOCALID"},
}


def naming_ranks(kind, settings, placement, program):
    """`program` behind a shell that gives a rank's numbers the names that programs expect, then becomes the program.

    mpirun numbers the ranks, so only the ranks can say. What the user sets by `-x` is left as the user set it.
    """
    numbers = {ours: f"${theirs}" for ours, theirs in _NUMBERS[kind].items()}
    if "LOCAL_WORLD_SIZE" not in numbers:  # Slurm's own words for it need a parser
        counts = {len(ranks) for ranks in placement.ranks_of.values()}
        if len(counts) == 1:
            numbers["LOCAL_WORLD_SIZE"] = str(counts.pop())
    if kind not in ("openmpi", "spectrum"):  # for programs that know Open MPI's names alone
        numbers.update({_OPEN_MPI[ours]: value for ours, value in numbers.items()})
    asked = asked_for(settings)
    exports = " ".join(f"{name}={value}" for name, value in numbers.items() if name not in asked)
    return ["sh", "-c", f'export {exports}; exec "$0" "$@"', *program] if exports else list(program)
