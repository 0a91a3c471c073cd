# SPDX-License-Identifier: Apache-2.0
"""The children of a run: started together, and ended together.

Each child leads a session of its own, so that it and all that it starts can be ended without touching anything else. When
one fails, the others get SIGTERM, and SIGKILL if they are still there after some seconds; signals for ddlrun go to all of
them; and should ddlrun be killed itself, the system kills them.
"""

import ctypes
import dataclasses
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time
import typing

from .messages import FILE, PROGRAM, RANK_FAILED, Problem
from .outputs import Output, Writer

GRACE = 5.0  # seconds between SIGTERM and SIGKILL, and for what was written before
LAST = 1.0  # seconds that what is still to be written has at least, after the end of the last child
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PR_SET_PDEATHSIG = 1


@dataclasses.dataclass
class Child:
    words: typing.List[str]
    environment: typing.Dict[str, str]
    name: str  # for messages: "rank 3"
    tag: str = ""  # what each line of its output begins with


def run(children, log):
    """Starts all children and waits for them. The status is that of the first that failed: 0 if none did, 128 + the
    signal's number if a signal ended it."""
    return _Supervision(children, log).status()


class _Supervision:
    def __init__(self, children, log):
        self._log = log
        self._living = {}  # process: child
        self._status = 0
        self._deadline = None  # then what lives is killed
        self._least = 0.0  # till then the output is waited for, and till the deadline
        self._told = False  # we were told to end the children
        self._noted = []  # signals, and how many children each has reached
        self._outputs = []  # which are open
        self._several = len(children) > 1
        self._wake, wake = socket.socketpair()
        wake.setblocking(False)
        self._wake.setblocking(False)
        self._writers = _writers(lambda: _wake_by(wake))
        self._before = {}
        self._blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # when we were started, which goes on to the children
        before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        try:
            for number in (*FORWARDED, signal.SIGCHLD):
                if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:  # as nohup does
                    self._before[number] = signal.signal(number, self._note)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._before)
            for child in children:
                if not self._told:
                    self._start(child)
            self._watch()
        finally:
            self._told = True
            self._kill(signal.SIGKILL)
            while self._living:
                self._reap(block=True)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            for writer in self._writers.values():
                writer.end()
            self._wake.close()
            wake.close()

    def status(self):
        return self._status

    def _start(self, child):
        out, err = ((stream and child.tag and subprocess.PIPE) or None for stream in (sys.stdout, sys.stderr))
        before = len(self._living)
        first = before == 0  # as under mpirun, the first rank alone reads what ddlrun is given
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)
            process = subprocess.Popen(child.words, env=child.environment, stdin=None if first else subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True, preexec_fn=_die_with_parent)
        except OSError as why:
            raise Problem(PROGRAM, f"program '{child.words[0]}' does not start: {why}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._before)
        self._living[process] = child
        for number, reached in list(self._noted):
            if reached <= before:  # it came before this one was there
                _signal_group(process, number)
        self._log.write(f"{child.name} is process {process.pid}")
        for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            if source is not None:  # else what we would write to is closed for the child as for us
                self._outputs.append(Output(source, self._writers[target], child.tag))

    def _note(self, number, _frame):
        if number == signal.SIGCHLD:
            return
        self._noted.append((number, len(self._living)))
        self._kill(number)
        if number in ENDING:
            # asked twice, or not obeyed for a while: the ranks have had their time
            self._deadline = time.monotonic() + (0 if self._told else GRACE)
            self._told = True

    def _watch(self):
        with self._log.told_by(self._tell):
            self._await_end(self._writers.values())
            lost = {str(writer.failure) for writer in self._writers.values()
                    if writer.failure is not None and not isinstance(writer.failure, BrokenPipeError)}
            if self._outputs or not _idle(self._writers.values()):
                lost.add("nobody reads it; read it, or send it to a file")
            for why in lost:
                self._status = self._status or 1
                self._log.error(FILE, f"output cannot be written: {why}")
            self._outputs.clear()
            self._deadline = time.monotonic() + LAST
            self._await_end([writer for stream, writer in self._writers.items() if stream is sys.stderr])

    def _await_end(self, writers):
        while self._living or self._outputs or not _idle(writers):
            if self._left() == 0:
                if not self._living:
                    return
                self._kill(signal.SIGKILL)
                self._deadline = time.monotonic() + LAST
            for output in self._await_outputs():
                try:
                    goes_on = output.forward()
                except BlockingIOError:
                    goes_on = bool(self._living)  # who else holds a pipe is not waited for
                if not goes_on:
                    output.close()
                    self._outputs.remove(output)
            self._reap()

    def _await_outputs(self):
        """Waits until something happened; returns outputs that may have more. Those for which there is no room are not read."""
        open_ones = [output for output in self._outputs if output.writer.has_room]
        left = 0 if open_ones and not self._living else self._left()
        poll = select.poll()
        for source in (self._wake, *(output.source for output in open_ones)):
            poll.register(source, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(None if left is None else math.ceil(1000 * left))}
        _drain(self._wake)
        return [output for output in open_ones if not self._living or output.source.fileno() in ready]

    def _left(self):
        """Seconds till the deadline, and behind the last child those for what is still to be written; None without a deadline."""
        if self._deadline is None:
            return None
        return max(0.0, (self._deadline if self._living else max(self._deadline, self._least)) - time.monotonic())

    def _tell(self, text):
        if sys.stderr is not None:
            self._writers[sys.stderr].write((text + "\n").encode(sys.stderr.encoding, "backslashreplace"))

    def _reap(self, block=False):
        for process in list(self._living):
            options = os.WEXITED | os.WNOWAIT | (0 if block else os.WNOHANG)
            if os.waitid(os.P_PID, process.pid, options) is None:
                continue
            # until it is reaped its number is nobody else's, so this ends what it left behind, and nothing else
            _signal_group(process, signal.SIGKILL)
            child = self._living.pop(process)
            status = process.wait()
            self._least = time.monotonic() + LAST
            self._log.write(f"{child.name} ended with status {status}")
            if status != 0 and self._status == 0:
                self._fail(child, status)

    def _fail(self, child, status):
        self._status = status if status > 0 else 128 - status
        how = f"status {status}" if status > 0 else f"signal {-status} ({signal.strsignal(-status)})"
        self._kill(signal.SIGTERM)
        self._deadline = min(self._deadline or float("inf"), time.monotonic() + GRACE)
        if self._several and not self._told:
            self._log.error(RANK_FAILED, f"{child.name} ended with {how}; the other ranks are ended too")

    def _kill(self, number):
        for process in self._living:
            _signal_group(process, number)


def _signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _writers(told):
    """For each of our streams that is open. Where both are the same file they share one, that lines stay whole."""
    writers = {stream: Writer(stream, told) for stream in (sys.stdout, sys.stderr) if stream is not None}
    if len(writers) == 2 and os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno()):
        writers[sys.stderr] = writers[sys.stdout]
    return writers


def _idle(writers):
    return all(writer.idle for writer in writers)


def _wake_by(wake):
    try:
        wake.send(b"\0")
    except OSError:  # full, which wakes as well, or closed
        pass


def _drain(wake):
    try:
        while wake.recv(4096):
            pass
    except BlockingIOError:
        pass


_prctl = ctypes.CDLL(None).prctl  # looked up before a fork, for little may be done behind one


def _die_with_parent():
    _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
