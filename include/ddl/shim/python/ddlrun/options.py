# SPDX-License-Identifier: Apache-2.0
"""The command line of ddlrun: `ddlrun [options] program [arguments]`.

Every long name takes one or two dashes. The first word that is no option is the program, and the rest is the program's; `--`
may stand before it.
"""

import dataclasses
import re
import shlex
import textwrap
import typing

from .messages import COMMAND_LINE, Problem

MODES = ("b", "c", "m", "n", "p", "r")  # what they mean, the library knows


@dataclasses.dataclass
class Settings:
    """What the command line asks for; `None` where it does not say."""

    mode: str = "p"
    ddl_arguments: typing.List[str] = dataclasses.field(default_factory=list)
    ddl_options: bool = True
    rank_file: typing.Optional[str] = None
    hosts: typing.Optional[typing.List[str]] = None
    host_file: typing.Optional[str] = None
    aisles: int = 1
    racks: int = 1
    nodes: typing.Optional[int] = None
    accelerators: typing.Optional[int] = None
    mpi_arguments: typing.List[str] = dataclasses.field(default_factory=list)
    tcp: bool = False
    variables: typing.List[str] = dataclasses.field(default_factory=list)
    checks: bool = True
    launcher: str = "auto"
    remote_shell: typing.Optional[str] = None
    tag_output: bool = False
    dry_run: bool = False
    verbose: bool = False
    help: bool = False
    version: bool = False
    program: typing.List[str] = dataclasses.field(default_factory=list)


def _mode(name, word):
    if word not in MODES:
        raise Problem(COMMAND_LINE, f"{name}: no mode '{word}'; it is one letter of {' '.join(MODES)}")
    return word


def _count(name, word):
    if not re.fullmatch(r"[0-9]{1,7}", word) or int(word) < 1:
        raise Problem(COMMAND_LINE, f"{name}: '{word}' is no number from 1 to 9999999")
    return int(word)


def _hosts(name, word):
    hosts = [host.strip() for host in word.split(",")]
    for host in hosts:
        check_host_name(name, host)
    return hosts


def check_host_name(source, host):
    """What is passed on to a remote shell and a rank file must be a name, and no option or command of theirs."""
    if ":" in host:
        raise Problem(COMMAND_LINE, f"{source}: '{host}' has a colon; write how many ranks a host has by --accelerators, and "
                                    "give an IPv6 address a name in /etc/hosts")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", host):
        raise Problem(COMMAND_LINE, f"{source}: '{host}' is no name of a host; write host1,host2")


def _variable(name, word):
    if not re.match(r"[A-Za-z_][A-Za-z0-9_]*(=|$)", word):
        raise Problem(COMMAND_LINE, f"{name}: '{word}' is neither VARIABLE nor VARIABLE=VALUE")
    return word


def _words(name, word):
    try:
        return shlex.split(word)
    except ValueError as why:
        raise Problem(COMMAND_LINE, f"{name}: '{word}' cannot be split into words: {why}") from None


def _command(name, word):
    if not _words(name, word):
        raise Problem(COMMAND_LINE, f"{name}: '{word}' names no command")
    return word


def _launcher(name, word):
    if word not in ("auto", "local", "openmpi", "spectrum", "mpich", "srun"):
        raise Problem(COMMAND_LINE, f"{name}: no launcher '{word}'; it is auto, local, openmpi, spectrum, mpich or srun")
    return word


def _text(_name, word):
    return word


@dataclasses.dataclass(frozen=True)
class Option:
    names: typing.Tuple[str, ...]
    field: str
    argument: str  # empty: none
    meaning: str
    read: typing.Callable = _text
    repeats: bool = False
    value: object = True  # of an option without an argument


OPTIONS = (
    Option(("mode", "m"), "mode", "LETTER", f"DDL mode: {' '.join(MODES)} (p)", _mode),
    Option(("ddlarg", "ddloption"), "ddl_arguments", "STRING", "passed to DDL behind the mode, in DDL_OPTIONS; may repeat",
           repeats=True),
    Option(("no_ddloptions",), "ddl_options", "", "leave DDL_OPTIONS out, for programs that pass options themselves",
           value=False),
    Option(("rankfile", "rf"), "rank_file", "FILE", "a rank file of your own (Open MPI's form); skips most checks"),
    Option(("host", "H"), "hosts", "HOST,HOST", "hosts; without any, those of the LSF or Slurm job, or this one", _hosts),
    Option(("hostfile",), "host_file", "FILE", "hosts, one a line"),
    Option(("aisles",), "aisles", "N", "aisles (1)", _count),
    Option(("racks",), "racks", "N", "racks in each aisle (1)", _count),
    Option(("nodes",), "nodes", "N", "hosts in each rack (all hosts / racks / aisles)", _count),
    Option(("accelerators",), "accelerators", "N", "ranks on each host (its GPUs; without a GPU, its cores)", _count),
    Option(("mpiarg",), "mpi_arguments", "WORD", "passed to mpirun; quote several words; may repeat", _words, repeats=True),
    Option(("tcp",), "tcp", "", "use TCP between hosts, whatever else there is"),
    Option(("x",), "variables", "VAR[=VALUE]", "a variable for all ranks; may repeat", _variable, repeats=True),
    Option(("skipchecks", "skip_checks", "skip-checks"), "checks", "", "do not look at the hosts before the start",
           value=False),
    Option(("launcher",), "launcher", "NAME", "auto, local (no MPI, one host), openmpi, spectrum, mpich or srun (auto)",
           _launcher),
    Option(("remote_shell", "remote-shell"), "remote_shell", "COMMAND", "in place of ssh, for the checks and for mpirun",
           _command),
    Option(("tag_output", "tag-output"), "tag_output", "", "begin each line of output with its rank"),
    Option(("dry_run", "dry-run"), "dry_run", "", "print the command, and run nothing"),
    Option(("v", "verbose"), "verbose", "", "say what is found and done"),
    Option(("h", "help"), "help", "", "this text"),
    Option(("version",), "version", "", "the version of ddlrun"),
)
_BY_NAME = {name: option for option in OPTIONS for name in option.names}


def parse(words):
    """`Settings` of a command line; throws `Problem` with the word that makes no sense."""
    settings = Settings()
    words = list(words)
    while words:
        if words[0] == "--":
            words.pop(0)
            break
        match = re.fullmatch(r"--?([A-Za-z_-]+)(?:=(.*))?", words[0], re.DOTALL)
        option = _BY_NAME.get(match.group(1)) if match else None
        if option is None:
            break
        name, given = words.pop(0), match.group(2)
        if not option.argument:
            if given is not None:
                raise Problem(COMMAND_LINE, f"{name}: this option takes no value")
            setattr(settings, option.field, option.value)
            continue
        if given is None and not words:
            raise Problem(COMMAND_LINE, f"{name}: its {option.argument} is missing")
        name = name.split("=")[0]
        value = option.read(name, given if given is not None else words.pop(0))
        if option.repeats:
            value = getattr(settings, option.field) + (value if isinstance(value, list) else [value])
        setattr(settings, option.field, value)
    settings.program = words
    _check(settings)
    return settings


def _check(settings):
    if settings.help or settings.version:
        return
    if not settings.program:
        raise Problem(COMMAND_LINE, "no program to run; write ddlrun [options] program [arguments], or ddlrun -h")
    if settings.program[0].startswith("-"):
        raise Problem(COMMAND_LINE, f"no option '{settings.program[0]}', and no program begins with a dash; see ddlrun -h")
    if settings.hosts and settings.host_file:
        raise Problem(COMMAND_LINE, "-H and --hostfile name hosts twice; use one of them")
    for name, said in (("-H", settings.hosts), ("--hostfile", settings.host_file), ("--accelerators", settings.accelerators)):
        if settings.rank_file and said:
            raise Problem(COMMAND_LINE, f"-rf and {name}: the rank file names the hosts and their ranks; use one of the two")


def usage():
    """The text of `ddlrun -h`."""
    lines = ["ddlrun [options] program [arguments]: starts the ranks of a program, on this host or on several", ""]
    for option in OPTIONS:
        names = ", ".join("-" + name for name in option.names if "-" not in name)
        head = f"  {names} {option.argument}".rstrip()
        folded = textwrap.wrap(option.meaning, 72)
        if len(head) > 34:
            lines.append(head)
            head = ""
        lines.append(f"{head:<36}{folded[0]}")
        lines += [" " * 36 + line for line in folded[1:]]
    return "\n".join(lines + ["", "Long names take one or two dashes. The ranks' status, or mpirun's, is that of ddlrun; "
                                  "1 if a check failed."])
