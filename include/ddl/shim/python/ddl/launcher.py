# SPDX-License-Identifier: Apache-2.0
"""What the launcher says of this process: ddlrun and mpirun set OMPI_COMM_WORLD_*."""

import multiprocessing
import os

_ALONE = {"RANK": 0, "SIZE": 1, "LOCAL_RANK": 0, "LOCAL_SIZE": 1}


def is_launched() -> bool:
    """Whether a launcher has started this process."""
    return all(_value(name).isdigit() for name in _ALONE)


def is_rank() -> bool:
    """Whether this process is what the launcher has started, and not one that such a process has made with `multiprocessing`, whose
    main module is imported anew: it knows its parent only afterwards."""
    is_imported_anew = getattr(multiprocessing.current_process(), "_inheriting", False)
    return is_launched() and multiprocessing.parent_process() is None and not is_imported_anew


def require_launcher(call: str) -> None:
    """Throws `RuntimeError` where none has, and in processes of `multiprocessing`."""
    if is_launched() and not is_rank():
        raise RuntimeError(f"ddl.{call}: this process was made by rank {rank()} with multiprocessing, and is no rank itself; call it "
                           "there")
    if not is_launched():
        missing = next(name for name in _ALONE if not _value(name).isdigit())
        raise RuntimeError(f"ddl.{call}: DDL could not start, for OMPI_COMM_WORLD_{missing} is not set; start the program with "
                           "mpirun or ddlrun")


def rank() -> int:
    """This process's rank, from 0."""
    return _number("RANK")


def size() -> int:
    """The number of ranks."""
    return _number("SIZE")


def local_rank() -> int:
    """This process's rank among those of its host: the number of its GPU."""
    return _number("LOCAL_RANK")


def local_size() -> int:
    """The number of ranks on this host."""
    return _number("LOCAL_SIZE")


def num_hosts() -> int:
    """The number of hosts, if all have as many ranks."""
    return size() // max(local_size(), 1)


def say(words: str) -> None:
    """Prints a line in one piece, for those of several ranks come side by side; nothing where the output is closed."""
    print(f"DDL: {words}\n", end="", flush=True)


def _value(name):
    return os.environ.get("OMPI_COMM_WORLD_" + name, "")


def _number(name):
    return int(_value(name)) if is_launched() else _ALONE[name]
