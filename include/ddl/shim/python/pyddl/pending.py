# SPDX-License-Identifier: Apache-2.0
"""Collectives under way, and collectives that are set up once."""

import ctypes
import time

from . import interrupt
from .arrays import duration
from .library import functions

MOMENT = 0.1  # seconds between two looks at what has become of a request


class _Pending:
    """The handle of a call on arrays that the call keeps alive."""

    _place = None

    def __init__(self, function, communicator, arguments, arrays):
        self._arrays = arrays
        self._communicator = communicator
        self._place = ctypes.c_void_p()  # is known to `__del__` also where a signal's handler throws behind the next call
        self._check(getattr(functions, function)(communicator._handle, *arguments, ctypes.byref(self._place)))
        self._handle = self._place.value

    def __reduce_ex__(self, _protocol):
        raise TypeError("a collective is of one process, which waits for it; make another one")

    @staticmethod
    def _check(status):
        if status != 0:
            raise functions.failure(status)


class Request(_Pending):
    """A collective under way. Its arrays belong to it until it is done."""

    def __init__(self, communicator, call, arguments, arrays):
        self._seen = interrupt.seen
        super().__init__("start_" + call, communicator, arguments, arrays)

    def wait(self) -> None:
        """Blocks until the collective is done; throws what it threw."""
        status = functions.wait_request(self._handle)
        self._arrays = None
        self._check(status)

    def test(self) -> bool:
        """Whether it is done; throws what it threw."""
        done = ctypes.c_int()
        status = functions.test_request(self._handle, ctypes.byref(done))
        if done.value:
            self._arrays = None
        self._check(status)
        return bool(done.value)

    def is_over(self, seconds: float = 0) -> bool:
        """Whether it has ended, well or badly, after so many seconds at most; `wait` says which."""
        done = ctypes.c_int()
        try:
            seconds = duration(seconds)
        except (TypeError, ValueError) as why:
            raise type(why)(f"is_over, rank {self._communicator.rank}: seconds {why}") from None
        end = time.monotonic() + seconds
        while functions.wait_request_for(self._handle, seconds, ctypes.byref(done)) == 0 and not done.value:
            seconds = end - time.monotonic()  # what is left behind a signal
            if not seconds > 0:
                break
        return bool(done.value)

    def fileno(self) -> int:
        """A descriptor that becomes readable when it is done, for selectors and event loops."""
        descriptor = ctypes.c_int()
        self._check(functions.get_descriptor(self._handle, ctypes.byref(descriptor)))
        return descriptor.value

    def __del__(self):
        if functions is not None and self._place:
            try:
                if self._arrays is not None:
                    self._await_peers()
            finally:
                functions.free_request(self._place)

    def _await_peers(self):
        """Who may still read and write the arrays. Behind a Ctrl-C, or another exception of a signal's handler, they are told that
        it is over."""
        done = ctypes.c_int()
        try:
            while functions.wait_request_for(self._place, MOMENT, ctypes.byref(done)) == 0 and not done.value:
                if self._seen != interrupt.seen:
                    functions.interrupt(self._communicator._handle)
        except BaseException:
            try:
                functions.interrupt(self._communicator._handle)
            finally:
                functions.wait_request(self._place)  # one call, which no second signal leaves
            raise


class Plan(_Pending):
    """A collective that is set up once: `plan()` carries it out, again and again, with the least overhead."""

    def __init__(self, communicator, call, arguments, arrays):
        super().__init__("plan_" + call, communicator, arguments, arrays)

    def __call__(self) -> int:
        """Carries it out."""
        self._check(functions.run_plan(self._handle))
        return 0

    def explain(self) -> str:
        """One line: schedule, transport, protocol, and why."""
        line = ctypes.create_string_buffer(1024)
        self._check(functions.explain_plan(self._handle, line, len(line)))
        return line.value.decode()

    def __del__(self):
        if functions is not None and self._place:
            functions.free_plan(self._place)


class DevicePlan(Plan):
    """A plan for an array in a device, whose producer `await_producer` waits for before each call."""

    def __init__(self, communicator, call, arguments, arrays, await_producer):
        super().__init__(communicator, call, arguments, arrays)
        self._await_producer = await_producer

    def __call__(self) -> int:
        try:
            self._await_producer()
        except Exception as why:  # pylint: disable=broad-except  # the others wait, whatever it is
            raise self._communicator._refused("run_plan", "x", why) from None
        return super().__call__()
