# SPDX-License-Identifier: Apache-2.0
"""Messages from one rank to another: a communicator of the two for each direction, opened when its first message comes.

Before each message goes its header, the tag and the length. Messages of one tag arrive in the order in which they were sent. One
that comes while the receiver waits for another tag is kept until somebody asks for it.
"""

import collections
import ctypes
import os
import queue
import re
import threading
import time

import numpy
import pyddl
import torch
from pyddl.interrupt import start_quiet
from torch.distributed import DistNetworkError, PrefixStore

from .meeting import announced, meet
from .tensors import BYTES, bytes_of, in_bytes


class Message:
    """One tensor on its way; to `Work` it is a request."""

    def __init__(self, tensor, tag):
        self.tensor, self.tag, self.failure, self.over = tensor, tag, None, threading.Event()
        self.begun = time.monotonic()

    def end(self, failure):
        self.failure = failure
        self.over.set()

    def is_over(self, seconds):
        return self.over.wait(min(seconds, threading.TIMEOUT_MAX))

    def wait(self):
        self.over.wait()
        if self.failure is not None:
            raise self.failure


class Pairs:
    """The pairs of a group that this rank is one of."""

    def __init__(self, store, rank, seconds):
        self._store, self._rank, self._seconds = store, rank, seconds
        self._pairs, self._opening = {}, threading.Lock()
        self._process, self._closed = os.getpid(), False

    def carry(self, tensor, source, target, tag):
        """A `Message` with the elements of a tensor from one rank to another, of which this is one."""
        key = source, target
        kind = _Sender if source == self._rank else _Receiver
        if os.getpid() != self._process:  # whose turns at the store are the parent's, and whose threads are not there
            raise pyddl.Broken(f"{kind.name}, rank {self._rank}: this process was made by fork, and the rank is its parent; call there, or "
                               "make the process by exec")
        with self._opening:  # threads of the program may send their first messages at once
            if self._closed:
                raise pyddl.Broken(f"{kind.name}, rank {self._rank}: this group was destroyed; call destroy_process_group behind its last "
                                   "message")
            if key not in self._pairs:
                self._pairs[key] = kind(self._store, source, target, self._seconds)
            return self._pairs[key].carry(Message(tensor, tag))

    def set_timeout(self, seconds):
        with self._opening:
            self._seconds = seconds
            for each in self._pairs.values():
                each.set_timeout(seconds)

    def interrupt(self):
        for each in list(self._pairs.values()):
            each.interrupt()

    def give_up_receiving(self):
        """Ends the wait for messages that have not come."""
        for each in list(self._pairs.values()):
            if isinstance(each, _Receiver):
                each.interrupt()

    def close(self):
        """Returns when all messages have come, or will not."""
        with self._opening:
            self._closed = True
        while self._pairs:
            self._pairs.popitem()[1].close()


class _Pair:
    """One end. Its thread opens the communicator, in which the sender is rank 0, and carries one message after the other."""

    name, rank = "", 0

    def __init__(self, store, source, target, seconds):
        self._store, self._ends, self._seconds = store, (source, target), seconds
        self._messages, self._ranks, self._given_up = queue.SimpleQueue(), None, threading.Event()
        self._header = numpy.zeros(2, numpy.int64)
        self._carries = False
        self._thread = threading.Thread(target=self._run, name="ddl-pair", daemon=True)
        start_quiet(self._thread)

    def carry(self, message):
        self._messages.put(message)
        return message

    def set_timeout(self, seconds):
        self._seconds = seconds
        if self._ranks is not None:
            self._ranks.set_timeout(seconds)

    def interrupt(self):
        self._given_up.set()
        while self._carries:
            self._ranks.interrupt()
            time.sleep(0.001)  # that may have come before the call

    def close(self):
        self._messages.put(None)
        self._thread.join()

    def _run(self):
        for message in iter(self._messages.get, None):
            try:
                if self._ranks is None:
                    self._ranks = self._meet(message.begun)
                self._carry(message)
            except Exception as why:  # pylint: disable=broad-except  # told by `wait`
                message.end(self._in_words_of_group(why))
            del message
        if self._ranks is not None:
            self._ranks.close()

    def _meet(self, begun):
        try:
            ended = announced(self._store, self._ends[1 - self.rank], receives=self.rank == 0)
            store = PrefixStore("pair/{}/{}".format(*self._ends), self._store)
            return meet(store, self.rank, 2, self._seconds, self._given_up, ended, begun)
        except DistNetworkError:
            raise pyddl.PeerLost(f"rank {self.rank}: rank {1 - self.rank} has ended, or who holds the group's store has; see "
                                 "its own error") from None

    def _carry(self, message):
        raise NotImplementedError

    def _move(self, address, size):
        self._carries = True
        try:
            if self._given_up.is_set():
                raise pyddl.Interrupted(f"rank {self.rank}: the program gave up before the message went")
            self._ranks._run("broadcast", address, size, BYTES, 0)
        finally:
            self._carries = False

    def _in_words_of_group(self, why):
        """An error names the ranks of the group, not those of the pair."""
        if not isinstance(why, (pyddl.Error, ValueError)):
            return why
        words = re.sub(r"\bbroadcast, (?=rank ([01]))", lambda found: ("send, ", "recv, ")[int(found[1])], str(in_bytes(why)))
        words = re.sub(r"\brank ([01])( of 2)?\b", lambda found: f"rank {self._ends[int(found[1])]}", words)
        return type(why)(re.sub(r"^(?=rank )", f"{self.name}, ", words))


class _Sender(_Pair):
    name, rank = "send", 0

    def _carry(self, message):
        size = bytes_of(message.tensor)
        self._header[:] = message.tag, size
        self._move(self._header.ctypes.data, self._header.nbytes)
        self._move(message.tensor.data_ptr(), size)
        message.end(None)


class _Receiver(_Pair):
    name, rank = "recv", 1

    def __init__(self, *arguments):
        self._lock = threading.Lock()  # of the next two: what came early is of tags that nobody wants
        self._wanted = []  # messages in the order of their calls
        self._early = collections.defaultdict(collections.deque)  # by tag
        super().__init__(*arguments)

    def carry(self, message):
        with self._lock:
            early = self._early[message.tag].popleft() if message.tag in self._early else None
            if early is None:
                self._wanted.append(message)
            elif not self._early[message.tag]:
                del self._early[message.tag]
        if early is None:
            return super().carry(message)
        self._hand_over(message, early)
        return message

    def _carry(self, message):
        """Takes in what comes, until that is what `message` waits for."""
        try:
            while not message.over.is_set():
                self._take_in()
        finally:
            with self._lock:
                self._first_wanted(None)

    def _take_in(self):
        self._move(self._header.ctypes.data, self._header.nbytes)
        tag, size = map(int, self._header)
        with self._lock:
            wanted = self._first_wanted(tag)
        if wanted is not None:
            try:
                self._move(wanted.tensor.data_ptr(), bytes_of(wanted.tensor))
                wanted.end(None)
            except Exception as why:  # pylint: disable=broad-except  # the affair of this one; what it breaks the next ones hear
                if isinstance(why, pyddl.Mismatch) and bytes_of(wanted.tensor) != size:  # of which the sender is told, too
                    why = _other_length(wanted, size)
                wanted.end(self._in_words_of_group(why))
            return
        early = numpy.empty(size, numpy.uint8)
        self._move(early.ctypes.data, size)
        with self._lock:
            wanted = self._first_wanted(tag)  # of a call that came meanwhile
            if wanted is None:
                self._early[tag].append(early)
        if wanted is not None:
            self._hand_over(wanted, early)

    def _first_wanted(self, tag):
        """Of a tag; what is over is let go."""
        self._wanted = [each for each in self._wanted if not each.over.is_set()]
        return next((each for each in self._wanted if each.tag == tag), None)

    def _hand_over(self, message, early):
        try:
            if bytes_of(message.tensor) != early.nbytes:
                raise _other_length(message, early.nbytes)
            if message.tensor.is_cuda:
                message.tensor.detach().reshape(-1).view(torch.uint8).copy_(torch.from_numpy(early))
            else:
                ctypes.memmove(message.tensor.data_ptr(), early.ctypes.data, early.nbytes)
            message.end(None)
        except Exception as why:  # pylint: disable=broad-except  # told by `wait`
            message.end(self._in_words_of_group(why))


def _other_length(message, size):
    return pyddl.Mismatch(f"rank 1: rank 0 sent {size} bytes with tag {message.tag}, and the tensor has {bytes_of(message.tensor)}; "
                          "pass tensors of one length")
