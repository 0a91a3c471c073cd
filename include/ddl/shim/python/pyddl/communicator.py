# SPDX-License-Identifier: Apache-2.0
"""A group of ranks, and what they do together."""

import ctypes
import sys
import typing
import weakref

from . import arrays, elements
from .arguments import Arguments
from .library import functions
from .memory import Memory
from .pending import DevicePlan, Plan, Request

_Array = typing.Any  # a NumPy array, memory of `malloc`, or what else `arrays` takes
_Count = typing.Optional[int]
_open = weakref.WeakValueDictionary()  # by id; other threads may open and close while it is copied


def interrupt_all():
    """For another thread: ends the calls that wait, on whatever communicators."""
    for each in _open.valuerefs():
        ranks = each()
        if ranks is not None:
            functions.interrupt(ranks._handle or ranks._closing)


def abort_all(why):
    """For a program that gives up: lets the other ranks know, on whatever communicators."""
    for each in _open.valuerefs():
        ranks = each()
        if ranks is not None and ranks.size > 1:
            functions.abort(ranks._handle, why.encode("utf-8", "replace"))


class Communicator(Arguments):
    """Ranks that communicate. Each method is called by all of them, in the same order.

    `x` is a NumPy array, memory of `malloc`, or an object with `__array_interface__`, `__cuda_array_interface__`,
    `__dlpack__` or a buffer: contiguous, and writable where a result replaces it. `n` counts elements; without it, all of
    `x` take part. `type` is a DDL_TYPE constant, needed only for memory, which has no type of its own. `op` is a DDL_OP
    constant.
    """

    _handle = None

    def __init__(self, handle):
        self._handle = handle
        self._closing = None  # the handle while `close` waits for calls under way, which a Ctrl-C is to end
        _open[id(self)] = self
        self._rank = functions.get_rank(handle)
        self._size = functions.get_size(handle)
        self._local_rank = functions.get_local_rank(handle)
        self._local_size = functions.get_local_size(handle)

    @property
    def rank(self) -> int:
        """This process's rank, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._size

    @property
    def local_rank(self) -> int:
        """This process's rank among those of its host."""
        return self._local_rank

    @property
    def local_size(self) -> int:
        """The number of ranks on this host."""
        return self._local_size

    @property
    def transport(self) -> str:
        """"shared_memory" on one host, or "cluster": MPI between hosts."""
        return (functions.get_transport(self._handle) or b"").decode()

    # ---- collectives

    def allreduce(self, x: _Array, n: _Count = None, type: _Count = None, op: int = elements.DDL_OP_SUM) -> int:
        """Replaces `x` by the combination of all ranks' `x`, on every rank."""
        span = self._span("allreduce", x, n, type)
        return self._run("allreduce", span.address, span.address, span.count, span.element,
                         self._number("allreduce", op, "op"))

    def allreduce_n(self, tensors: typing.Iterable[typing.Any], op: int = elements.DDL_OP_SUM) -> int:
        """The same for a list of arrays of one dtype, in one exchange."""
        _spans, arguments = self._several("allreduce_n", self._listed("allreduce_n", tensors), op)
        return self._run("allreduce_n", *arguments)

    def broadcast(self, x: _Array, root: int = 0, n: _Count = None, type: _Count = None) -> int:
        """Replaces `x` by the root's, on every rank."""
        root = self._number("broadcast", root, "root")
        span = self._span("broadcast", x, n, type, writable=root != self._rank)
        return self._run("broadcast", span.address, span.count, span.element, root)

    def reduce(self, x: _Array, root: int = 0, n: _Count = None, type: _Count = None, op: int = elements.DDL_OP_SUM) -> int:
        """Replaces the root's `x` by the combination of all ranks' `x`; elsewhere `x` stays as it is."""
        root = self._number("reduce", root, "root")
        span = self._span("reduce", x, n, type, writable=root == self._rank)
        return self._run("reduce", span.address, span.address if root == self._rank else None, span.count, span.element,
                         self._number("reduce", op, "op"), root)

    def reduce_scatter(self, x: _Array, out: _Array, op: int = elements.DDL_OP_SUM) -> int:
        """Leaves this rank's block of the combination of all `x` in `out`. `block` says which elements these are."""
        return self._blocks("reduce_scatter", x, out, whole=0, more=(self._number("reduce_scatter", op, "op"),))

    def all_gather(self, x: _Array, out: _Array) -> int:
        """Leaves the `x` of all ranks, one behind the other, in `out` of every rank. Each `x` is a block of `out`."""
        return self._blocks("all_gather", x, out, whole=1)

    def gather(self, x: _Array, out: _Array = None, root: int = 0, n: _Count = None) -> int:
        """The same, on the root alone; elsewhere `out` may be None. `n`: the elements of `out`, if the blocks are unequal."""
        return self._rooted("gather", x, out, root, n, whole=1)

    def scatter(self, x: _Array, out: _Array, root: int = 0, n: _Count = None) -> int:
        """Leaves this rank's block of the root's `x` in `out`; elsewhere `x` may be None. `n`: the elements of `x`, if the
        blocks are unequal."""
        return self._rooted("scatter", x, out, root, n, whole=0)

    def all_to_all(self, x: _Array, out: _Array) -> int:
        """Block `d` of rank `s` becomes block `s` of rank `d`. The elements of `x` are a multiple of the ranks."""
        return self._blocks("all_to_all", x, out, whole=None)

    def barrier(self) -> int:
        """Returns when all ranks have called it."""
        return self._run("barrier")

    def block(self, count: int, rank: _Count = None) -> int:
        """How many elements of a vector of `count` are the block of a rank; of this one if none is named."""
        count = self._number("block", count, "count", 64)
        rank = self._rank if rank is None else self._number("block", rank, "rank")
        if not 0 <= rank < self._size or count < 0:
            raise ValueError(f"block, rank {self._rank}: rank {rank} of {self._size}, count {count}; name a rank, and 0 or more")
        return functions.count_of_block(count, self._size, rank)

    # ---- the same later, or again

    def allreduce_async(self, x: _Array, n: _Count = None, type: _Count = None, op: int = elements.DDL_OP_SUM) -> Request:
        """Starts an allreduce and returns a `Request`. Leave `x` alone until it is done."""
        return self._start("allreduce", x, n, type, self._number("allreduce_async", op, "op"))

    def allreduce_n_async(self, tensors: typing.Iterable[typing.Any], op: int = elements.DDL_OP_SUM) -> Request:
        """Starts an allreduce of several arrays."""
        tensors = self._listed("allreduce_n_async", tensors)
        spans, arguments = self._several("allreduce_n_async", tensors, op)
        return Request(self, "allreduce_n", arguments, (tensors, spans, arguments))

    def broadcast_async(self, x: _Array, root: int = 0, n: _Count = None, type: _Count = None) -> Request:
        """Starts a broadcast."""
        root = self._number("broadcast_async", root, "root")
        span = self._span("broadcast_async", x, n, type, writable=root != self._rank)
        return Request(self, "broadcast", (span.address, span.count, span.element, root), (span, x))

    def barrier_async(self) -> Request:
        """Starts a barrier."""
        return Request(self, "barrier", (), None)

    def plan_allreduce(self, x: _Array, n: _Count = None, type: _Count = None, op: int = elements.DDL_OP_SUM) -> Plan:
        """An allreduce that is set up once: `plan()` carries it out on `x`, again and again."""
        span = self._span("plan_allreduce", x, n, type)
        arguments = (span.address, span.address, span.count, span.element, self._number("plan_allreduce", op, "op"))
        if span.device is None:
            return Plan(self, "allreduce", arguments, (span, x))
        return DevicePlan(self, "allreduce", arguments, (span, x), lambda: arrays.span_of(x))  # its stream may change

    # ---- the group

    def split(self, color: int, key: int = 0) -> "Communicator":
        """A communicator of the ranks that pass the same color, ordered by key, then by rank."""
        handle = ctypes.c_void_p()
        self._check(functions.split(self._handle, self._number("split", color, "color"),
                                    self._number("split", key, "key"), ctypes.byref(handle)))
        return Communicator(handle.value)

    def malloc(self, nbytes: int) -> Memory:
        """`nbytes` bytes that the other ranks of this host can map."""
        try:
            number = arrays.index(nbytes)
        except (TypeError, ValueError) as why:
            raise type(why)(f"malloc, rank {self._rank}: nbytes {why}") from None
        if number < 0:
            raise ValueError(f"malloc, rank {self._rank}: nbytes is {number}; pass 0 or more")
        return Memory(self._handle, number)

    def set_timeout(self, seconds: float) -> None:
        """How long a wait for another rank may take from now on."""
        try:
            number = arrays.duration(seconds)
        except (TypeError, ValueError) as why:
            raise type(why)(f"set_timeout, rank {self._rank}: seconds {why}") from None
        self._check(functions.set_timeout(self._handle, number))

    def set_schedule(self, name: str) -> None:
        """The schedule of later reductions: "tuned", which is the default, or, for sums of float32, float64 and float16, "enhanced",
        "rings" or "halvings". All ranks name the same."""
        if not isinstance(name, str):
            raise TypeError(f"set_schedule, rank {self._rank}: name is {name!r}; pass a word such as \"tuned\"")
        self._check(functions.set_schedule(self._handle, name.replace("\0", "\\0").encode("utf-8", "backslashreplace")))

    def interrupt(self) -> None:
        """For another thread: ends the call that waits, which breaks the communicator."""
        self._check(functions.interrupt(self._handle))

    def abort(self, why: object = "") -> None:
        """For a rank that gives up: the calls of the others, under way or to come, raise `Broken` with these words, or those of an
        exception. Waits for nobody."""
        self._check(functions.abort(self._handle, str(why or "").encode("utf-8", "replace") or None))

    def close(self) -> None:
        """Lets go of the communicator."""
        handle, self._handle, self._closing = self._handle, None, self._handle
        if handle is None:
            return
        try:
            if isinstance(sys.exc_info()[1], KeyboardInterrupt):  # whoever ends the program waits for no call under way
                functions.interrupt(handle)
            self._check(functions.close(handle))
        finally:
            self._closing = None
            _open.pop(id(self), None)

    def __del__(self, ends=sys.is_finalizing):
        if functions is not None and not ends() and self._handle is not None:  # the end of the process waits for nobody
            _open[id(self)] = self  # again, for a Ctrl-C to find: a collection of cycles has cleared it
            self.close()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *_failure: object) -> None:
        self.close()

    def __reduce_ex__(self, _protocol):
        raise TypeError("a communicator is of one process; call pyddl.init() in each")

    def __repr__(self):
        return f"<pyddl.Communicator rank {self._rank} of {self._size}, {self.transport or 'closed'}>"

    def _run(self, call, *arguments):
        self._check(getattr(functions, "run_" + call)(self._handle, *arguments))
        return 0

    def _check(self, status):
        if status != 0:
            raise functions.failure(status)

    def _start(self, call, x, n, element, *more):
        span = self._span(call + "_async", x, n, element)
        return Request(self, call, (span.address, span.address, span.count, span.element, *more), (span, x))
