# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a wait.

While the main thread waits inside the library Python cannot run a signal handler. So a thread of ours is told of each
signal by the interpreter's wakeup descriptor. It gives the main thread a moment; as long as that has not moved since, it has the
library end the call, which may begin later, and KeyboardInterrupt comes. Where a handler of the program's own has SIGINT, that is left to end the
wait or not: only a second SIGINT within the same wait ends it. A collective that was under way when KeyboardInterrupt came, and
that nobody waits for any more, is ended too.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time

from .library import functions

MOMENT = 0.2  # seconds in which a call may end by itself
seen = 0  # signals of which a KeyboardInterrupt came, or will come


class Watch:
    """Calls `end` when a SIGINT wants the main thread out of where it waits. To be made by the main thread; `None` of it
    remains after `stop`."""

    def __init__(self, end):
        self._end = end
        self._ear, self._mouth = socket.socketpair()
        self._mouth.setblocking(False)
        self._ear.settimeout(None)
        self._before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        self._main = threading.main_thread().ident
        self._calls = ctypes.c_ulong.from_address(functions.python_calls())
        self._pid = os.getpid()
        self._last = None  # where the main thread was at the last SIGINT
        self._thread = threading.Thread(target=self._listen, name="pyddl-interrupt", daemon=True)
        self._thread.start()
        os.register_at_fork(after_in_child=self._forked)

    def stop(self):
        """Gives the descriptor back, if it is still ours."""
        if os.getpid() != self._pid or threading.get_ident() != self._main:
            return  # only the main thread may; until the process ends the descriptor stays as it is
        now = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(self._before if now == self._mouth.fileno() else now, warn_on_full_buffer=False)
        self._mouth.close()  # which ends the thread
        self._thread.join(5)
        self._ear.close()

    def _forked(self):
        """A child's signals are none of its parent's."""
        if self._mouth.fileno() >= 0 and threading.current_thread() is threading.main_thread():
            now = signal.set_wakeup_fd(-1)
            if now != self._mouth.fileno():
                signal.set_wakeup_fd(now)

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
                    os.write(self._before, numbers)
                except OSError:
                    pass
            if signal.SIGINT in numbers:
                self._interrupt()

    def _interrupt(self):
        global seen
        place = self._place()
        second = place is not None and place == self._last
        self._last = place
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            seen += 1
        elif not second:
            return
        end = time.monotonic() + MOMENT
        while time.monotonic() < end:
            time.sleep(0.02)
            if self._place() != place:
                return
        while place is not None and self._place() == place:
            self._end()
            time.sleep(MOMENT)

    def _place(self):
        """Which instruction the main thread is at, and how many calls it has made: the same as before, and it has not moved."""
        frame = sys._current_frames().get(self._main)
        return None if frame is None else (id(frame), frame.f_lasti, self._calls.value)


def watch(end):
    """A `Watch`, if this thread may have one."""
    if threading.current_thread() is not threading.main_thread():
        return None
    try:
        return Watch(end)
    except ValueError:  # another interpreter of the process
        return None
