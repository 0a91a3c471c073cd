# SPDX-License-Identifier: Apache-2.0
"""Collectives under way, as torch.distributed sees them."""

import datetime
import queue
import threading
import time

import pyddl
import torch
from torch.distributed import Work as _Work

from .tensors import await_producers, in_bytes

UNSET = datetime.timedelta(0)  # as a timeout, and what is below


class Limit:
    """The timeout that a call was given: the others are told by `give_up` where it ends first."""

    def __init__(self, name, timeout, give_up):
        self.seconds = timeout.total_seconds()
        self.end = time.monotonic() + self.seconds
        self._name, self._give_up = name, give_up

    def give_up(self):
        words = f"{self._name}: not done within {self.seconds:g} s, which was its timeout"
        self._give_up(words)
        return pyddl.Timeout(f"{words}; see what the other ranks do, or set a longer one")


class Work(_Work):
    """Some requests of ddl, and what is left to do when they are done, such as copies. `tensors` are the result. `limit`: after
    which they fail, where that is asked for. `sweep`: called when somebody has waited for it: what was called before is over, too."""

    def __init__(self, requests, tensors, finish=None, waiter=None, limit=None, sweep=lambda: None):
        super().__init__()
        self._requests, self.tensors, self._finish, self._waiter, self._limit = requests, tensors, finish, waiter, limit
        self._lock = threading.Lock()
        self._done = False
        self._failure = None
        self._future = None
        self._sweep = sweep
        self.source = None  # whose message it is
        if not requests:
            self.is_over()

    def wait(self, timeout=UNSET):
        """Returns when it is done; throws what it threw, and `pyddl.Timeout` if that takes longer than `timeout`."""
        seconds = timeout.total_seconds() if timeout > UNSET else None
        if not self.is_over(seconds):
            raise pyddl.Timeout(f"wait: the collective was not done within {seconds} s; wait for longer, or see what the other "
                                "ranks do")
        self._sweep()
        if self._failure is not None:
            raise self._failure
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self.is_over(0)

    def is_success(self):
        return self.is_completed() and self._failure is None

    def exception(self):
        return self._failure

    def result(self):
        self.wait()
        return self.tensors

    def _source_rank(self):
        return super()._source_rank() if self.source is None else self.source

    def get_future(self):
        """A future of the tensors. It is completed by the group's own thread, which also runs what `then` adds."""
        if self._future is not None:
            return self._future
        begin = torch.futures.Future()
        self._future = begin.then(self._outcome)  # which holds a failure as C++ sees one, unlike `set_exception`
        if self._done or self._waiter.is_current():  # who would wait for himself
            self.is_over()
            begin.set_result(None)
        else:
            self._waiter.add(self, begin)
        return self._future

    def _outcome(self, _begin):
        self._sweep()
        if self._failure is not None:
            raise self._failure
        return self.tensors

    def is_over(self, seconds=None):
        """Whether it has ended, well or badly, after so many seconds at most; without a number it waits for that."""
        if self._done:
            return True
        end = None if seconds is None else time.monotonic() + seconds
        if not self._lock.acquire(timeout=-1 if seconds is None else min(seconds, threading.TIMEOUT_MAX)):
            return False
        try:
            if not self._done:
                late = self._limit is not None and (end is None or end >= self._limit.end)
                end = self._limit.end if late else end
                if end is None or all(each.is_over(max(end - time.monotonic(), 0)) for each in self._requests):
                    self._end()
                elif late:
                    self._failure = self._limit.give_up()
                    self._end()
            return self._done
        finally:
            self._lock.release()

    def _end(self):
        try:
            for each in self._requests:
                each.wait()
            if self._finish is not None:
                self._finish()
                await_producers(self.tensors)
        except Exception as why:  # pylint: disable=broad-except  # told by `wait`
            self._failure = self._failure or in_bytes(why)
        self._requests = self._finish = None
        self._done = True


class Waiter:
    """A thread that waits for the works whose futures somebody has, one after the other."""

    def __init__(self):
        self._works = queue.SimpleQueue()
        self._thread, self._starting = None, threading.Lock()

    def is_current(self):
        return threading.current_thread() is self._thread

    def add(self, work, begin):
        with self._starting:  # threads of the program may take the first futures at once
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ddl-futures", daemon=True)
                thread.start()  # with all signals open, for callbacks of the program may start processes
                self._thread = thread
        self._works.put((work, begin))

    def stop(self):
        """Returns when all works so far are done."""
        if self._thread is not None and not self.is_current():
            self._works.put(None)
            self._thread.join()
            self._thread = None

    def _run(self):
        for work, begin in iter(self._works.get, None):
            work.is_over()
            begin.set_result(None)
            del work, begin
