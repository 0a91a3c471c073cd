# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a wait.

While the main thread waits inside the library Python cannot run a signal handler. So a thread of ours is told of each signal by
the interpreter's wakeup descriptor. It gives the main thread a moment; as long as that has not moved since, and
KeyboardInterrupt has not come, it has the library end the call, which may begin later, and KeyboardInterrupt comes. Where a
handler of the program's own has SIGINT, that is left to end the wait or not: only a second SIGINT within the same wait ends it.
A collective that was under way when KeyboardInterrupt came, and that nobody waits for any more, is ended too.
"""

import ctypes
import fcntl
import os
import signal
import socket
import sys
import threading
import time

from .errors import SystemRefusal
from .library import functions

MOMENT = 0.2  # seconds in which a call may end by itself
_CAME = b"\0"  # number of no signal: behind a SIGINT, its KeyboardInterrupt has come
seen = 0  # signals of which a KeyboardInterrupt came, or will come
_watches = []  # the last one has the descriptor
_own = signal.default_int_handler
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS}


def start_quiet(thread):
    """Starts a thread of ours. It takes no signal that is sent to the process, which a program may keep for one of its threads by
    `sigwait`. It does take those of its own faults."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # asked first, for what follows may raise what a handler raises
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _FAULTS)
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _raise(number, frame):
    """Python's own handler of SIGINT, and the watch hears that it runs."""
    if _watches:
        _watches[-1].tell_that_it_came()
    _own(number, frame)


def _is_pythons(handler):
    return handler in (_own, _raise)


def _put(handler):
    """Such a one is the default, too: others ask whether that is in its place before they put their own there."""
    signal.default_int_handler = handler
    if _is_pythons(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, handler)


def _above_streams(end):
    """The same socket, whose number is none of a standard stream: what has closed those writes to them all the same."""
    if end.fileno() > 2:
        return end
    with end:
        return socket.socket(fileno=fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3))


class Watch:
    """Calls `end` when a SIGINT wants the main thread out of where it waits. To be made, and stopped, by the main thread."""

    def __init__(self, end, where):
        self._end = end
        try:
            self._ear, self._mouth = map(_above_streams, socket.socketpair())
        except OSError as why:
            raise SystemRefusal(f"{where}: no descriptors to hear of Ctrl-C: {why}; raise their limit (ulimit -n)") from None
        self._mouth.setblocking(False)
        self._ear.settimeout(None)
        self._before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        self._main = threading.main_thread().ident
        self._calls = ctypes.c_ulong.from_address(functions.python_calls())
        self._pid = os.getpid()
        self._last = None  # where the main thread was at the last SIGINT
        self._first = not _watches
        self._thread = threading.Thread(target=self._listen, name="pyddl-interrupt", daemon=True)
        _watches.append(self)
        try:
            _put(_raise)
            os.register_at_fork(after_in_child=self._forked)
            start_quiet(self._thread)
        except BaseException as why:
            self.stop()
            if self._thread.ident is None and isinstance(why, RuntimeError):
                raise SystemRefusal(f"{where}: no thread to hear of Ctrl-C: {why}; raise the limit on processes (ulimit -u)") from None
            raise

    def stop(self):
        """Gives the descriptor back, if it is still ours."""
        if os.getpid() != self._pid or threading.get_ident() != self._main:
            return  # only the main thread may; until the process ends the descriptor stays as it is
        _watches.remove(self)
        if not _watches:
            _put(_own)
        now = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(self._before if now == self._mouth.fileno() else now, warn_on_full_buffer=False)
        self._mouth.shutdown(socket.SHUT_RDWR)  # which ends the thread, also while a process made by fork has the socket, too
        self._mouth.close()
        if self._thread.is_alive():
            self._thread.join(5)
        self._ear.close()

    def _forked(self):
        """A child's signals are none of its parent's."""
        if self._mouth.fileno() >= 0 and threading.current_thread() is threading.main_thread():
            now = signal.set_wakeup_fd(-1)
            if now != self._mouth.fileno():
                signal.set_wakeup_fd(now)
            _watches.clear()
            _put(_own)

    def tell_that_it_came(self):
        try:
            self._mouth.send(_CAME)
        except OSError:  # full, or closed
            pass

    def _came(self):
        """Whether what was heard last came, or what comes behind it."""
        try:
            return _CAME in self._ear.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:  # nothing is there
            return False

    def _listen(self):
        while True:
            try:
                numbers = self._ear.recv(64)
            except OSError:
                return
            if not numbers:
                return
            if self._before >= 0:  # who had the descriptor before us is told too
                try:
                    os.write(self._before, numbers.replace(_CAME, b"") if self._first else numbers)
                except OSError:
                    pass
            if signal.SIGINT in numbers:
                self._interrupt(came=signal.SIGINT not in numbers.rpartition(_CAME)[2])

    def _interrupt(self, came):
        global seen
        place = self._place()
        second = place is not None and place == self._last
        self._last = place
        if _is_pythons(signal.getsignal(signal.SIGINT)):
            seen += 1
        elif not second:
            return
        end = time.monotonic() + MOMENT
        while time.monotonic() < end:
            if came or self._came() or self._place() != place:
                return
            time.sleep(0.02)
        while place is not None and self._place() == place and not self._came():
            self._end()
            time.sleep(MOMENT)

    def _place(self):
        """Which instruction the main thread is at, and how many calls it has made: the same as before, and it has not moved."""
        frame = sys._current_frames().get(self._main)
        return None if frame is None else (id(frame), frame.f_lasti, self._calls.value)


def watch(end, where):
    """A `Watch`, if this thread may have one. `where` begins the text of a `SystemRefusal`."""
    if threading.current_thread() is not threading.main_thread():
        return None
    try:
        return Watch(end, where)
    except ValueError:  # another interpreter of the process
        return None
