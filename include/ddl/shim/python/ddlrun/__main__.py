# SPDX-License-Identifier: Apache-2.0
"""`ddlrun`, from the command line to the status of the program."""

import contextlib
import os
import shlex
import shutil
import sys
import traceback

from . import environment, hardware, hardware_checks, hosts, mpi, options, placement, processes
from .messages import CHECKS_SKIPPED, COMMAND_LINE, FILE, MANY_HOSTS, PROGRAM, UNEXPECTED, Log, Problem, tell
from .version import __version__

MOST_CHECKED = 10  # hosts; asking more takes long


def main(words=None):
    """Runs the command line `words`, or that of this process; returns the status to exit with."""
    log = Log()
    try:
        return _run(options.parse(sys.argv[1:] if words is None else words), log)
    except Problem as problem:
        log.error(problem.number, str(problem))
    except Exception:  # pylint: disable=broad-except  # whatever it is, it is told in our own format
        log.error(UNEXPECTED, "unexpected error\n" + traceback.format_exc().rstrip())
    finally:
        log.close()
        for stream in (sys.stdout, sys.stderr):
            _let_go(stream)
    return 1


def _let_go(stream):
    """What found no reader, or no room, is not to be written once more when the interpreter ends, whose status it would change."""
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(settings, log):
    if settings.help:
        _show(options.usage())
        return 0
    if settings.version:
        _show(f"ddlrun {__version__}")
        return 0
    log.write("ddlrun " + shlex.join(sys.argv[1:]))
    own_file = placement.of_file(settings.rank_file, settings) if settings.rank_file else None
    names = own_file.hosts if own_file else hosts.of_run(settings)
    shape = None if own_file else placement.shape_of(len(names), settings.nodes, settings.racks, settings.aisles)
    local = _starts_itself(settings, names)
    if not (local or settings.dry_run):
        hosts.check_known(names)
    launcher = None if local else _launcher(settings)
    here = hardware.found()
    if not (local or own_file or settings.dry_run):
        here = _checked(settings, names, here, launcher, log)
    accelerators = settings.accelerators or len(here["gpus"]) or sum(here["cores"])
    placed = own_file or placement.by_host(names, accelerators, here["cores"], shape)
    _say(settings, log, f"hosts {', '.join(names)}; on each cores {here['cores']}, GPUs {here['gpus'] or 'none'}; "
                        f"{placed.size} ranks, {placed.host_list}")
    return _local(settings, placed, log) if local else _by_mpi(settings, placed, launcher, log)


def _starts_itself(settings, names):
    """Ranks of this host alone need no MPI, unless the command line speaks of it."""
    if settings.launcher == "local":
        if len(names) > 1 or not hosts.is_this_host(names[0]):
            raise Problem(COMMAND_LINE, f"--launcher local starts ranks on this host only, not on {', '.join(names)}")
        return True
    if settings.launcher != "auto" or settings.mpi_arguments or settings.tcp or settings.rank_file or len(names) > 1:
        return False
    try:
        return hosts.is_this_host(names[0])
    except Problem:
        if settings.dry_run:  # nobody need know the host yet
            return False
        raise


def _launcher(settings):
    if settings.dry_run:  # a line can be shown for an MPI that is not here
        kind = "openmpi" if settings.launcher == "auto" else settings.launcher
        return mpi.find(settings.launcher) or mpi.Launcher(kind, "srun" if kind == "srun" else "mpirun")
    return mpi.required(settings.launcher)


def _checked(settings, names, here, launcher, log):
    """The hardware of the first host, if all have the same, or what this host has if nobody asks them."""
    if len(names) > MOST_CHECKED and settings.checks:
        log.warn(MANY_HOSTS, f"{len(names)} hosts: above {MOST_CHECKED} the checks are skipped, to start sooner")
    if not settings.checks or len(names) > MOST_CHECKED:
        log.warn(CHECKS_SKIPPED, "SKIPCHECKS: the hardware of other hosts was not looked at; it is taken to be that of "
                                 "this one")
        return here
    shell, quote = hardware_checks.remote_shell(settings), shlex.quote
    if launcher.kind == "srun":
        shell, quote = f"{shlex.quote(launcher.path)} --nodes=1 --ntasks=1 --nodelist", str
    return hardware_checks.check(names, here, hosts.is_this_host, shell, quote, log)


def _local(settings, placed, log):
    environments = environment.of_local_ranks(settings, placed)
    shown = [f"+ env {_differences(ranks)} {shlex.join(settings.program)}" for ranks in environments]
    if settings.dry_run:
        _show("\n".join(shown))
        return 0
    for line in shown:
        _say(settings, log, line)
    program = settings.program[0]
    if shutil.which(program, path=environments[0].get("PATH")) is None:  # which is where it is looked for
        raise Problem(PROGRAM, f"no program '{program}' that can be run; give its path, or make it executable")
    return processes.run([processes.Child(settings.program, ranks, f"rank {rank}",
                                          f"[{rank}] " if settings.tag_output else "")
                          for rank, ranks in enumerate(environments)], log)


def _differences(variables):
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items() if os.environ.get(name) != value)


def _by_mpi(settings, placed, launcher, log):
    try:
        folder = log.folder
    except OSError as why:
        raise _no_room(why) from None
    command = mpi.command(launcher, settings, placed, folder, settings.program)
    for path, text in command.files.items():
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as why:
            raise _no_room(why) from None
        log.write(f"{path}:\n{text.rstrip()}")
    line = f"+ {command}"
    log.write(line)
    if settings.dry_run:
        with contextlib.suppress(OSError):  # the rank file is there: the line can be run as it stands
            log.keep()
        _show(line)
        return 0
    tell(line)
    variables = {name: value for name, value in {**os.environ, **command.environment}.items() if value is not None}
    return processes.run([processes.Child(command.words, variables, "mpirun")], log)


def _no_room(why):
    return Problem(FILE, f"the rank file cannot be written: {why}; set TMPDIR to a folder that has room")


def _show(text):
    """On stdout, if it is open: with the bytes that words of a command came with, whatever they are, for a shell to run."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.buffer.write(os.fsencode(text + "\n"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # its reader has enough
        pass
    except OSError as why:
        raise Problem(FILE, f"output cannot be written: {why}") from None


def _say(settings, log, line):
    log.write(line)
    if settings.verbose:
        tell(line)


if __name__ == "__main__":
    sys.exit(main())
