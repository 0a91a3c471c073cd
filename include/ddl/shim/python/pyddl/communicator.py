# SPDX-License-Identifier: Apache-2.0
"""A group of ranks, and what they do together."""

import ctypes

import numpy

from . import arrays, elements
from .elements import OF_DTYPE, SIZES
from .library import functions
from .memory import Memory
from .pending import Plan, Request

MOST_OPS = 4096  # a library may be made with ops of its own
_ndarray = numpy.ndarray
_first_byte = ctypes.c_char.from_buffer  # refuses what is read-only or not contiguous, as the long way does with words
_address = ctypes.addressof
_failure = functions.failure
_run_allreduce = functions.run_allreduce


class Communicator:
    """Ranks that communicate. Each method is called by all of them, in the same order.

    `x` is a NumPy array, memory of `malloc`, or an object with `__array_interface__`, `__cuda_array_interface__`,
    `__dlpack__` or a buffer: contiguous, and writable where a result replaces it. `n` counts elements; without it, all of
    `x` take part. `type` is a DDL_TYPE constant, needed only for memory, which has no type of its own. `op` is a DDL_OP
    constant.
    """

    def __init__(self, handle):
        self._handle = handle
        self._rank = functions.get_rank(handle)
        self._size = functions.get_size(handle)

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
        return functions.get_local_rank(self._handle)

    @property
    def local_size(self) -> int:
        """The number of ranks on this host."""
        return functions.get_local_size(self._handle)

    @property
    def transport(self) -> str:
        """"shared_memory" on one host, or "cluster": MPI between hosts."""
        return (functions.get_transport(self._handle) or b"").decode()

    # ---- collectives

    def allreduce(self, x, n=None, type=None, op=elements.DDL_OP_SUM) -> int:
        """Replaces `x` by the combination of all ranks' `x`, on every rank."""
        try:  # the short way, of arrays and arguments that leave no question
            if x.__class__ is _ndarray:
                first = _address(_first_byte(x))
                element = OF_DTYPE[x.dtype]
                count = x.size
                known = type is None or type == element
            else:
                known = x.__class__ is Memory and x.address is not None
                element = elements.DDL_TYPE_FLOAT if type is None else type
                first, count = x.address, x.nbytes // SIZES[element]
            if n is not None:
                known = known and n.__class__ is int and 0 <= n <= count
                count = n
            known = known and op.__class__ is int and 0 <= op < MOST_OPS
        except (TypeError, ValueError, KeyError, BufferError, AttributeError, IndexError):
            known = False
        if known:
            status = _run_allreduce(self._handle, first, first, count, element, op)
            if status:
                raise _failure(status)
            return 0
        with self._span("allreduce", x, n, type) as span:
            return self._run("allreduce", span.address, span.address, span.count, span.element,
                             self._number("allreduce", op, "op"))

    def allreduce_n(self, tensors, op=elements.DDL_OP_SUM) -> int:
        """The same for a list of arrays of one dtype, in one exchange."""
        return self._run("allreduce_n", *self._several("allreduce_n", tensors),
                         self._number("allreduce_n", op, "op"))

    def broadcast(self, x, root=0, n=None, type=None) -> int:
        """Replaces `x` by the root's, on every rank."""
        with self._span("broadcast", x, n, type) as span:
            return self._run("broadcast", span.address, span.count, span.element, self._number("broadcast", root, "root"))

    def reduce(self, x, root=0, n=None, type=None, op=elements.DDL_OP_SUM) -> int:
        """Replaces the root's `x` by the combination of all ranks' `x`; elsewhere `x` stays as it is."""
        with self._span("reduce", x, n, type) as span:
            return self._run("reduce", span.address, span.address if root == self._rank else None, span.count, span.element,
                             self._number("reduce", op, "op"), self._number("reduce", root, "root"))

    def reduce_scatter(self, x, out, op=elements.DDL_OP_SUM) -> int:
        """Leaves this rank's block of the combination of all `x` in `out`. `block` says which elements these are."""
        return self._blocks("reduce_scatter", x, out, whole=0, more=(self._number("reduce_scatter", op, "op"),))

    def all_gather(self, x, out) -> int:
        """Leaves the `x` of all ranks, one behind the other, in `out` of every rank. Each `x` is a block of `out`."""
        return self._blocks("all_gather", x, out, whole=1)

    def gather(self, x, out=None, root=0, n=None) -> int:
        """The same, on the root alone; elsewhere `out` may be None. `n`: the elements of `out`, if the blocks are unequal."""
        return self._rooted("gather", x, out, root, n, whole=1)

    def scatter(self, x, out, root=0, n=None) -> int:
        """Leaves this rank's block of the root's `x` in `out`; elsewhere `x` may be None. `n`: the elements of `x`, if the
        blocks are unequal."""
        return self._rooted("scatter", x, out, root, n, whole=0)

    def all_to_all(self, x, out) -> int:
        """Block `d` of rank `s` becomes block `s` of rank `d`. The elements of `x` are a multiple of the ranks."""
        return self._blocks("all_to_all", x, out, whole=None)

    def barrier(self) -> int:
        """Returns when all ranks have called it."""
        return self._run("barrier")

    def block(self, count, rank=None):
        """How many elements of a vector of `count` are the block of a rank; of this one if none is named."""
        rank = self._rank if rank is None else rank
        if not 0 <= rank < self._size or count < 0:
            raise ValueError(f"block, rank {self._rank}: rank {rank} of {self._size}, count {count}; name a rank, and 0 or more")
        return functions.count_of_block(count, self._size, rank)

    # ---- the same later, or again

    def allreduce_async(self, x, n=None, type=None, op=elements.DDL_OP_SUM) -> Request:
        """Starts an allreduce and returns a `Request`. Leave `x` alone until it is done."""
        return self._start("allreduce", x, n, type, self._number("allreduce_async", op, "op"))

    def allreduce_n_async(self, tensors, op=elements.DDL_OP_SUM) -> Request:
        """Starts an allreduce of several arrays."""
        tensors = list(tensors)
        pointers, counts, number, element = self._several("allreduce_n", tensors)
        return Request(self, "allreduce_n", (pointers, counts, number, element,
                                             self._number("allreduce_n", op, "op")), (tensors, pointers, counts))

    def broadcast_async(self, x, root=0, n=None, type=None) -> Request:
        """Starts a broadcast."""
        span = self._host_span("broadcast_async", x, n, type)
        return Request(self, "broadcast", (span.address, span.count, span.element,
                                           self._number("broadcast_async", root, "root")), (span, x))

    def barrier_async(self) -> Request:
        """Starts a barrier."""
        return Request(self, "barrier", (), None)

    def plan_allreduce(self, x, n=None, type=None, op=elements.DDL_OP_SUM) -> Plan:
        """An allreduce that is set up once: `plan()` carries it out on `x`, again and again."""
        span = self._host_span("plan_allreduce", x, n, type)
        return Plan(self, "allreduce", (span.address, span.address, span.count, span.element,
                                       self._number("plan_allreduce", op, "op")), (span, x))

    # ---- the group

    def split(self, color, key=0) -> "Communicator":
        """A communicator of the ranks that pass the same color, ordered by key, then by rank."""
        handle = ctypes.c_void_p()
        self._check(functions.split(self._handle, self._number("split", color, "color"),
                                    self._number("split", key, "key"), ctypes.byref(handle)))
        return Communicator(handle.value)

    def malloc(self, nbytes) -> Memory:
        """`nbytes` bytes that the other ranks of this host can map."""
        return Memory(self._handle, nbytes)

    def set_timeout(self, seconds) -> None:
        """How long a wait for another rank may take from now on."""
        self._check(functions.set_timeout(self._handle, seconds))

    def set_schedule(self, name) -> None:
        """The schedule of later reductions: "tuned", which is the default, or "ring" and so on. All ranks name the same."""
        self._check(functions.set_schedule(self._handle, name.encode()))

    def interrupt(self) -> None:
        """For another thread: ends the call that waits, which breaks the communicator."""
        self._check(functions.interrupt(self._handle))

    def close(self) -> None:
        """Lets go of the communicator."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._check(functions.close(handle))

    def __enter__(self):
        return self

    def __exit__(self, *_failure):
        self.close()

    def __repr__(self):
        return f"<pyddl.Communicator rank {self._rank} of {self._size}, {self.transport or 'closed'}>"

    # ---- arguments, and refusals

    def _run(self, call, *arguments):
        self._check(getattr(functions, "run_" + call)(self._handle, *arguments))
        return 0

    def _check(self, status):
        if status != 0:
            raise functions.failure(status)

    def _refused(self, call, argument, why):
        """The exception for a call that never came to the library. The others wait in theirs, and are told."""
        if self._size > 1 and self._handle is not None:
            _run_allreduce(self._handle, None, None, 1, -1, -1)
        return type(why)(f"{call}, rank {self._rank}: {argument} {why}")

    def _number(self, call, value, name, bits=32):
        try:
            number = arrays.index(value, "")
        except (TypeError, ValueError) as why:
            raise self._refused(call, name, why) from None
        if number >= 1 << (bits - 1) or number < -(1 << (bits - 1)):
            raise self._refused(call, name, ValueError(f"is {number}; pass less"))
        return number

    def _span(self, call, x, n, element, argument="x", writable=True):
        """A `Span` of the elements that take part; those of a GPU in a copy, which is written back behind the call."""
        try:
            span = self._resolve(x, element, writable)
            if n is not None:
                n = arrays.index(n, "n")
                if not 0 <= n <= span.count:
                    raise ValueError(f"holds {span.count} elements of type {elements.name_of(span.element)}, and n is {n}; "
                                     f"pass 0 to {span.count}")
                span.count = n
        except (TypeError, ValueError) as why:
            raise self._refused(call, argument, why) from None
        return _Staged(self, span, writable) if span.device else _Here(span)

    def _host_span(self, call, x, n, element):
        with self._span(call, x, n, element) as span:
            if span.device:
                raise self._refused(call, "x", ValueError("lies in the memory of a GPU; use the blocking call"))
            return span

    def _resolve(self, x, element, writable):
        if element is not None:
            element = arrays.index(element, "type")
            if not 0 <= element < len(elements.SIZES):
                raise ValueError(f"has type {element}, which is no DDL_TYPE constant")
        if isinstance(x, Memory):
            element = elements.DDL_TYPE_FLOAT if element is None else element
            return arrays.Span(x.used(), x.nbytes // elements.SIZES[element], element, x)
        span = arrays.span_of(x, writable)
        if element is not None and element != span.element:
            raise ValueError(f"has elements of type {elements.name_of(span.element)}, and type says "
                             f"{elements.name_of(element)}; pass the type that it has")
        return span

    def _several(self, call, tensors):
        spans = [self._host_span(call, tensor, None, None) for tensor in tensors]
        if len({span.element for span in spans}) > 1:
            names = sorted({elements.name_of(span.element) for span in spans})
            raise self._refused(call, "tensors", ValueError(f"are of types {', '.join(names)}; pass tensors of one type"))
        pointers = (ctypes.c_void_p * max(len(spans), 1))(*[span.address for span in spans])
        counts = (ctypes.c_size_t * max(len(spans), 1))(*[span.count for span in spans])
        return pointers, counts, len(spans), spans[0].element if spans else elements.DDL_TYPE_FLOAT

    def _blocks(self, call, x, out, whole, more=()):
        """A call with two arrays, of which number `whole` is the whole vector; None: both are."""
        with self._span(call, x, None, None, writable=False) as source, self._span(call, out, None, None, "out") as target:
            self._agree(call, source, target)
            count = (source.count, target.count)[whole or 0]
            wanted = count if whole is None else self.block(count)
            part = target.count if whole in (0, None) else source.count
            if part != wanted:
                raise self._refused(call, "x" if whole == 1 else "out", ValueError(
                    f"holds {part} elements, and of {count} this rank has {wanted}; size it by block(count)"))
            return self._run(call, source.address, target.address, count, source.element, *more)

    def _rooted(self, call, x, out, root, n, whole):
        root = self._number(call, root, "root")
        if root == self._rank:
            with self._span(call, x, None, None, writable=False) as source, self._span(call, out, None, None, "out") as target:
                self._agree(call, source, target)
                count = (source.count, target.count)[whole]
                part = (source.count, target.count)[1 - whole]
                if part != self.block(count):
                    raise self._refused(call, "x" if whole == 1 else "out", ValueError(
                        f"holds {part} elements, and of {count} this rank has {self.block(count)}; size it by block(count)"))
                return self._run(call, source.address, target.address, count, source.element, root)
        # without `n`: a block tells how long the whole is if all blocks are equally long
        argument, name = (x, "x") if whole == 1 else (out, "out")
        with self._span(call, argument, None, None, name, writable=whole == 0) as part:
            ends = (part.address, None) if whole == 1 else (None, part.address)
            count = part.count * self._size if n is None else self._number(call, n, "n", 64)
            if count < 0 or part.count != self.block(count):
                raise self._refused(call, name, ValueError(f"holds {part.count} elements, which is not this rank's block of "
                                                           f"{count}; size it by block(n)"))
            return self._run(call, *ends, count, part.element, root)

    def _agree(self, call, source, target):
        if source.element != target.element:
            raise self._refused(call, "out", ValueError(
                f"has elements of type {elements.name_of(target.element)}, and x of {elements.name_of(source.element)}; "
                "pass arrays of one type"))

    def _start(self, call, x, n, element, *more):
        span = self._host_span(call + "_async", x, n, element)
        return Request(self, call, (span.address, span.address, span.count, span.element, *more), (span, x))


class _Here:
    """Elements that are used where they lie."""

    def __init__(self, span):
        self._span = span

    def __enter__(self):
        return self._span

    def __exit__(self, *_failure):
        pass


class _Staged:
    """Elements of a GPU: a copy that peers can map, written back when the call has succeeded."""

    def __init__(self, communicator, span, writable):
        self._span, self._writable = span, writable
        self._bytes = span.count * elements.SIZES[span.element]
        self._copy = communicator.malloc(self._bytes)

    def __enter__(self):
        span = self._span
        span.device.to_host(self._copy.address, span.address, self._bytes)
        return arrays.Span(self._copy.address, span.count, span.element, span, span.device)

    def __exit__(self, kind, _failure, _trace):
        if kind is None and self._writable:
            self._span.device.to_device(self._span.address, self._copy.address, self._bytes)
        self._copy.free()
