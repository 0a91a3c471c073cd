# SPDX-License-Identifier: Apache-2.0
"""Memory that the other ranks of the host can map: a collective on it copies nothing."""

import ctypes
import math
import typing

import numpy

from . import arrays
from .elements import SIZES
from .library import functions


class Memory:
    """A block of such memory, zero at first: what `malloc` calls device memory.

    `numpy.asarray(memory)` shows its bytes, `memory.array(shape, dtype)` shows them as elements; nothing is copied. The block
    is given back by `free`, or when nobody refers to it any more. After `free` its arrays must not be used.
    """

    __slots__ = ("_ddl_malloc_address", "nbytes", "__weakref__")  # by the first the library knows it

    def __init__(self, communicator, nbytes):
        self._ddl_malloc_address: typing.Optional[int] = None
        self.nbytes: int = nbytes
        pointer = ctypes.c_void_p()
        status = functions.allocate(communicator, max(nbytes, 1), ctypes.byref(pointer))
        if status != 0:
            raise functions.failure(status, "malloc")
        self._ddl_malloc_address = pointer.value

    @property
    def address(self) -> typing.Optional[int]:
        """Where it begins; None once it was freed."""
        return self._ddl_malloc_address

    def free(self) -> None:
        """Gives the memory back. Throws `ValueError` the second time."""
        address = self._used_by("free")
        self._ddl_malloc_address = None
        status = functions.deallocate(address)
        if status != 0:
            raise functions.failure(status)

    def used(self) -> int:
        """Where it begins. Throws `ValueError` once it was freed."""
        if self.address is None:
            raise ValueError(f"is memory of {self.nbytes} bytes that was freed; do not use it any more")
        return self.address

    def _used_by(self, call):
        try:
            return self.used()
        except ValueError as why:
            raise ValueError(f"{call}, rank {_rank()}: buf {why}") from None

    def array(self, shape: typing.Any, dtype: typing.Any = numpy.float32) -> numpy.ndarray:
        """A NumPy array over its first bytes."""
        self._used_by("array")
        shape, dtype = layout("array", shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        if size > self.nbytes:
            raise ValueError(f"array, rank {_rank()}: shape is {shape}, which takes {size} bytes of {dtype}, and buf has "
                             f"{self.nbytes}; allocate more, or show fewer")
        return numpy.asarray(self)[:size].view(dtype).reshape(shape)

    @property
    def __array_interface__(self):
        return {"version": 3, "typestr": "|u1", "shape": (self.nbytes,), "data": (self.used(), False)}

    def __len__(self) -> int:
        return self.nbytes

    def __repr__(self):
        where = "freed" if self.address is None else f"at {self.address:#x}"
        return f"<pyddl.Memory of {self.nbytes} bytes, {where}>"

    def __reduce_ex__(self, _protocol):
        raise TypeError("memory of pyddl.malloc is of one process, which holds it once; send, or copy, an array of it")

    def __del__(self):
        if self.address is not None and functions is not None:
            functions.deallocate(self.address)
            self._ddl_malloc_address = None


def layout(call, shape, dtype):
    """A shape as a tuple of ints, and a dtype. Throws `TypeError` or `ValueError`, in the name of the call."""
    where = f"{call}, rank {_rank()}: "
    try:
        kind = numpy.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{where}dtype is {dtype!r}; pass one that NumPy knows") from None
    if kind.hasobject or kind.itemsize == 0 or kind.subdtype is not None or kind.kind in "SUmM":  # the last are text and times
        raise TypeError(f"{where}dtype is {kind}; pass one of numbers")
    try:
        extents = tuple(map(arrays.index, shape if numpy.iterable(shape) else (shape,)))
    except (TypeError, ValueError) as why:
        raise type(why)(f"{where}shape {why}") from None
    if any(extent < 0 for extent in extents):
        raise ValueError(f"{where}shape is {extents}; pass 0 or more for each axis")
    try:
        numpy.broadcast_to(numpy.empty((), kind), extents)
    except ValueError as why:
        raise ValueError(f"{where}shape is {extents}, of which NumPy makes no array: {why}; pass fewer elements, or fewer axes"
                         ) from None
    return extents, kind


def _rank():
    from .process import rank  # which needs this module
    return rank()


def copy_to(memory, data):
    """The bytes of an array to the beginning of `memory`."""
    span = arrays.span_of(data, writable=False)
    size = _fitting(span, memory)
    if span.device:
        span.device.to_host(memory.used(), span.address, size)
    else:
        ctypes.memmove(memory.used(), span.address, size)


def copy_from(data, memory):
    """As many bytes as an array has, from the beginning of `memory`."""
    span = arrays.span_of(data)
    size = _fitting(span, memory)
    if span.device:
        span.device.to_device(span.address, memory.used(), size)
    else:
        ctypes.memmove(span.address, memory.used(), size)


def _fitting(span, memory):
    size = span.count * SIZES[span.element]
    memory.used()
    if size > memory.nbytes:
        raise ValueError(f"has {size} bytes, and the memory {memory.nbytes}; allocate more, or pass a part of the array")
    return size
