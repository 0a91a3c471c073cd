# SPDX-License-Identifier: Apache-2.0
"""Messages from one rank to another: a communicator of the two for each direction and tag, opened when its first message comes."""

import queue
import threading
import time

import pyddl
from torch.distributed import PrefixStore

from .meeting import meet
from .tensors import BYTES, bytes_of


class Message:
    """One tensor on its way; to `Work` it is a request."""

    def __init__(self, tensor):
        self.tensor, self.failure, self._over = tensor, None, threading.Event()

    def end(self, failure):
        self.failure = failure
        self._over.set()

    def is_over(self, seconds):
        return self._over.wait(seconds)

    def wait(self):
        self._over.wait()
        if self.failure is not None:
            raise self.failure


class Pairs:
    """The pairs of a group that this rank is one of."""

    def __init__(self, store, rank, seconds):
        self._store, self._rank, self.seconds = store, rank, seconds
        self._pairs = {}

    def carry(self, tensor, source, target, tag):
        """A `Message` with the elements of a tensor from one rank to another, of which this is one."""
        key = source, target, tag
        if key not in self._pairs:
            store = PrefixStore("pair/{}/{}/{}".format(*key), self._store)
            self._pairs[key] = _Pair(store, 0 if source == self._rank else 1, self.seconds)
        return self._pairs[key].carry(tensor)

    def interrupt(self):
        for each in self._pairs.values():
            each.interrupt()

    def close(self):
        """Returns when all messages have come."""
        while self._pairs:
            self._pairs.popitem()[1].close()


class _Pair:
    def __init__(self, store, rank, seconds):
        self._messages, self._ranks, self._given_up = queue.SimpleQueue(), None, threading.Event()
        self._carries = False
        self._thread = threading.Thread(target=self._run, args=(store, rank, seconds), name="ddl-pair", daemon=True)
        self._thread.start()

    def carry(self, tensor):
        message = Message(tensor)
        self._messages.put(message)
        return message

    def interrupt(self):
        self._given_up.set()
        while self._carries:
            self._ranks.interrupt()
            time.sleep(0.001)  # that may have come before the call

    def close(self):
        self._messages.put(None)
        self._thread.join()

    def _run(self, store, rank, seconds):
        for message in iter(self._messages.get, None):
            try:
                if self._ranks is None:
                    self._ranks = meet(store, rank, 2, seconds, self._given_up)
                self._carries = True
                if self._given_up.is_set():
                    raise pyddl.Interrupted(f"rank {rank} of 2: the program gave up before the message went")
                self._ranks._run("broadcast", message.tensor.data_ptr(), bytes_of(message.tensor), BYTES, 0)
                message.end(None)
            except Exception as why:  # pylint: disable=broad-except  # told by `wait`
                message.end(why)
            finally:
                self._carries = False
            del message
        if self._ranks is not None:
            self._ranks.close()
