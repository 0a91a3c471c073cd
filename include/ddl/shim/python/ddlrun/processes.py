# SPDX-License-Identifier: Apache-2.0
"""The children of a run: started together, and ended together.

Each child leads a session of its own, so that it and all that it starts can be ended without touching anything else. When
one fails, the others get SIGTERM, and SIGKILL if they are still there after some seconds; signals for ddlrun go to all of
them; and should ddlrun be killed itself, the system kills them.
"""

import ctypes
import dataclasses
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
import typing

from .messages import FILE, PROGRAM, RANK_FAILED, Problem

GRACE = 5.0  # seconds between SIGTERM and SIGKILL
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


class _Output:
    """One stream of a child, whose lines come out whole, behind a tag."""

    def __init__(self, source, target, tag):
        self.source, self.target, self.tag, self.rest = source, target, tag.encode(), b""
        self.lost = None  # why some of it could not be written, though there is a reader
        os.set_blocking(source.fileno(), False)

    def forward(self):
        """Writes the lines that are there; false at the end of the stream, or where nobody reads what we write: a rank that goes
        on to write is then to hear of it, as it would without us."""
        while True:
            try:
                some = os.read(self.source.fileno(), 65536)
            except BlockingIOError:
                return True
            if not some:
                self.finish()
                return False
            *lines, self.rest = (self.rest + some).split(b"\n")
            if not self._write(lines):
                return False

    def finish(self):
        if self.rest:
            self._write([self.rest])
            self.rest = b""

    def _write(self, lines):
        """False if our reader has gone, or what we write finds no room."""
        if not lines:
            return True
        text = b"".join(self.tag + line + b"\n" for line in lines)
        try:
            while text:
                text = text[self.target.write(text):]  # an unbuffered one may take a part
            self.target.flush()
            return True
        except OSError as why:
            self.lost = None if isinstance(why, BrokenPipeError) else why
            return False


class _Supervision:
    def __init__(self, children, log):
        self._log = log
        self._living = {}  # process: child
        self._status = 0
        self._deadline = None  # then what is left is killed
        self._told = False  # we were told to end the children
        self._noted = []  # signals, and how many children each has reached
        self._outputs = []
        self._several = len(children) > 1
        self._selector = selectors.DefaultSelector()
        self._wake, wake = socket.socketpair()
        wake.setblocking(False)
        self._wake.setblocking(False)
        self._before = {}
        before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        try:
            self._selector.register(self._wake, selectors.EVENT_READ)
            for number in (*FORWARDED, signal.SIGCHLD):
                if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:  # as nohup does
                    self._before[number] = signal.signal(number, self._note)
            for child in children:
                if not self._told:
                    self._start(child)
            self._watch()
        finally:
            self._told = True
            self._kill(signal.SIGKILL)
            while self._living:
                self._reap(block=True)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            self._selector.close()
            self._wake.close()
            wake.close()

    def status(self):
        return self._status

    def _start(self, child):
        out, err = ((stream and child.tag and subprocess.PIPE) or None for stream in (sys.stdout, sys.stderr))
        before = len(self._living)
        first = before == 0  # as under mpirun, the first rank alone reads what ddlrun is given
        try:
            process = subprocess.Popen(child.words, env=child.environment, stdin=None if first else subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True, preexec_fn=_die_with_parent)
        except OSError as why:
            raise Problem(PROGRAM, f"program '{child.words[0]}' does not start: {why}") from None
        self._living[process] = child
        for number, reached in list(self._noted):
            if reached <= before:  # it came before this one was there
                _signal_group(process, number)
        self._log.write(f"{child.name} is process {process.pid}")
        for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            if source is not None:  # else what we would write to is closed for the child as for us
                self._outputs.append(_Output(source, target.buffer, child.tag))
                self._selector.register(source, selectors.EVENT_READ, self._outputs[-1])

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
        while self._living:
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            for key, _ in self._selector.select(left):
                if key.data is None:
                    _drain(self._wake)
                elif not key.data.forward():
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._kill(signal.SIGKILL)
                self._deadline = time.monotonic() + GRACE
            self._reap()
        for key in list(self._selector.get_map().values()):  # who else holds a pipe is not waited for
            if key.data is not None:
                if key.data.forward():
                    key.data.finish()
                key.fileobj.close()
        for why in {str(each.lost) for each in self._outputs if each.lost}:
            self._status = self._status or 1
            self._log.error(FILE, f"output cannot be written: {why}")

    def _reap(self, block=False):
        for process in list(self._living):
            options = os.WEXITED | os.WNOWAIT | (0 if block else os.WNOHANG)
            if os.waitid(os.P_PID, process.pid, options) is None:
                continue
            # until it is reaped its number is nobody else's, so this ends what it left behind, and nothing else
            _signal_group(process, signal.SIGKILL)
            child = self._living.pop(process)
            status = process.wait()
            self._log.write(f"{child.name} ended with status {status}")
            if status != 0 and self._status == 0:
                self._fail(child, status)

    def _fail(self, child, status):
        self._status = status if status > 0 else 128 - status
        how = f"status {status}" if status > 0 else f"signal {-status} ({signal.strsignal(-status)})"
        if self._living:
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


def _drain(wake):
    try:
        while wake.recv(4096):
            pass
    except BlockingIOError:
        pass


_prctl = ctypes.CDLL(None).prctl  # looked up before a fork, for little may be done behind one


def _die_with_parent():
    _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
