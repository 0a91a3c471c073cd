# SPDX-License-Identifier: Apache-2.0
"""Are the hosts of a run reachable, do they have the same ddl, and the same hardware?"""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

from . import hardware
from .messages import OTHER_DDL, OTHER_HARDWARE, UNREACHABLE, Problem

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10"
PATIENCE = 60  # seconds that a host may take to say what it has
ANSWERS_AT_ONCE = 16


def remote_shell(settings, environment=os.environ):
    """The command that runs another one on a host: `<command> <host> <words>`."""
    for choice in (settings.remote_shell, environment.get("OMPI_MCA_plm_rsh_agent"),
                   environment.get("HYDRA_LAUNCHER_EXEC")):
        if choice:
            return choice
    return SSH


def check(hosts, here, is_local, shell, quote, log):
    """Asks every host for its hardware, and returns that of the first. Throws `Problem` at the first difference.

    `quote(word)` is `word` as `shell` wants it: ssh joins words and has them read by a shell of that host, srun does not.
    """
    def ask(host):
        return here if is_local(host) else _ask(host, shell, quote)

    with concurrent.futures.ThreadPoolExecutor(ANSWERS_AT_ONCE) as threads:
        answers = list(threads.map(ask, hosts))
    for host, answer in zip(hosts, answers):
        log.write(f"{host}: {json.dumps(answer)}")
    for host, answer in zip(hosts, answers):
        _compare(hosts[0], answers[0], host, answer)
    return answers[0]


def _ask(host, shell, quote):
    variables = [f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "DDL_LIBRARY_PATH", "PATH") if name in os.environ]
    words = ["env", *variables, sys.executable, "-m", "ddlrun.hardware"]
    command = [*shlex.split(shell), host, *map(quote, words)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False,
                                stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Problem(UNREACHABLE, f"host '{host}' did not answer within {PATIENCE} s to: {shlex.join(command)}") from None
    except OSError as why:
        raise Problem(UNREACHABLE, f"host '{host}' cannot be asked, for the remote shell does not start: {why}") from None
    for line in answer.stdout.splitlines():
        if line.startswith(hardware.MARK):
            return json.loads(line[len(hardware.MARK):])
    said = " ".join((answer.stderr or answer.stdout).split())[-300:]
    if answer.returncode in (126, 127) or "No module named" in said:
        raise Problem(OTHER_DDL, f"host '{host}' has no ddl, or no Python at {sys.executable}: {said}; install the same "
                                 "there")
    raise Problem(UNREACHABLE, f"host '{host}' is not reachable by '{shell}' (status {answer.returncode}): {said}; see "
                               "that this user can log in there without a password")


def _compare(first, expected, host, answer):
    if answer["ddl"] != expected["ddl"] or answer["library"] != expected["library"]:
        raise Problem(OTHER_DDL, f"host '{host}' has ddl {answer['ddl']} (libddl.so {answer['library'] or 'not found'}), "
                                 f"host '{first}' has ddl {expected['ddl']} (libddl.so "
                                 f"{expected['library'] or 'not found'}); install the same on both")
    for what, words in (("machine", "machine"), ("cores", "cores of each socket"), ("gpus", "GPUs")):
        if answer[what] != expected[what]:
            raise Problem(OTHER_HARDWARE, f"host '{host}' has {words} {answer[what]}, host '{first}' {expected[what]}; "
                                          "take hosts of one kind, or write --skipchecks")
