# SPDX-License-Identifier: Apache-2.0
"""ddlrun starts the ranks of a program: on this host by itself, on several hosts through the MPI that is there.

    ddlrun [options] program [arguments]
    ddlrun --accelerators 4 python train.py
    ddlrun -H host1,host2 python train.py

`ddlrun -h` lists the options. The modules, in the order of a run:

    options            the command line
    hosts              which hosts: named, of a hostfile, of an LSF or Slurm job, or this one
    hardware           sockets, cores and GPUs of a host
    hardware_checks    are the hosts reachable, with the same ddl and the same hardware?
    placement          which rank runs where: rank file, host list, DDL_OPTIONS
    environment        what ranks find in their environment
    mpi                which MPI is there, and the command that starts it
    processes          children: signals, failures, end
    outputs            what they write, tagged, where nobody may be reading it
    messages           errors and warnings, and the log
"""

from .version import __version__

__all__ = ["__version__"]
