# SPDX-License-Identifier: Apache-2.0
"""Memory that the other ranks of the host can map: a collective on it copies nothing."""

import ctypes
import math

import numpy

from . import arrays
from .library import functions


class Memory:
    """A block of such memory, zero at first: what `malloc` calls device memory.

    `numpy.asarray(memory)` shows its bytes, `memory.array(shape, dtype)` shows them as elements; nothing is copied. The block
    is given back by `free`, or when nobody refers to it any more. After `free` its arrays must not be used.
    """

    __slots__ = ("address", "nbytes", "__weakref__")

    def __init__(self, communicator, nbytes):
        self.address = None
        self.nbytes = nbytes
        pointer = ctypes.c_void_p()
        status = functions.allocate(communicator, max(nbytes, 1), ctypes.byref(pointer))
        if status != 0:
            raise functions.failure(status)
        self.address = pointer.value

    def free(self):
        """Gives the memory back. Throws `ValueError` the second time."""
        address = self.used()
        self.address = None
        status = functions.deallocate(address)
        if status != 0:
            raise functions.failure(status)

    def used(self):
        """Where it begins. Throws `ValueError` once it was freed."""
        if self.address is None:
            raise ValueError(f"is memory of {self.nbytes} bytes that was freed; do not use it any more")
        return self.address

    def array(self, shape, dtype=numpy.float32):
        """A NumPy array over its first bytes."""
        dtype = numpy.dtype(dtype)
        shape = (shape,) if numpy.isscalar(shape) else tuple(shape)
        count = math.prod(map(int, shape))
        if count < 0 or count * dtype.itemsize > self.nbytes:
            raise ValueError(f"an array of shape {shape} and {dtype} needs {count * dtype.itemsize} bytes, and this memory "
                             f"has {self.nbytes}")
        return numpy.asarray(self)[:count * dtype.itemsize].view(dtype).reshape(shape)

    @property
    def __array_interface__(self):
        return {"version": 3, "typestr": "|u1", "shape": (self.nbytes,), "data": (self.used(), False)}

    def __len__(self):
        return self.nbytes

    def __repr__(self):
        where = "freed" if self.address is None else f"at {self.address:#x}"
        return f"<pyddl.Memory of {self.nbytes} bytes, {where}>"

    def __del__(self):
        if self.address is not None and functions is not None:
            functions.deallocate(self.address)
            self.address = None


def copy_to(memory, data):
    """The bytes of an array to the beginning of `memory`."""
    span = arrays.span_of(data, writable=False)
    size = _fitting(span, memory)
    if span.device:
        span.device.to_host(memory.used(), span.address, size)
    else:
        arrays.copy(memory.used(), span.address, size)


def copy_from(data, memory):
    """As many bytes as an array has, from the beginning of `memory`."""
    span = arrays.span_of(data)
    size = _fitting(span, memory)
    if span.device:
        span.device.to_device(span.address, memory.used(), size)
    else:
        arrays.copy(span.address, memory.used(), size)


def _fitting(span, memory):
    from .elements import SIZES
    size = span.count * SIZES[span.element]
    memory.used()
    if size > memory.nbytes:
        raise ValueError(f"has {size} bytes, and the memory {memory.nbytes}; allocate more, or pass a part of the array")
    return size
