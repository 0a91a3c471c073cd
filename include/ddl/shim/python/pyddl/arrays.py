# SPDX-License-Identifier: Apache-2.0
"""Where the elements of a Python object lie: NumPy arrays, buffers, and what offers an array interface or DLPack.

A result replaces what is there, so an array must be writable, and its elements must lie next to each other. In which order
its axes lie does not matter, so long as it is the same on all ranks.
"""

import ctypes
import math

import numpy

from . import dlpack, elements

_ADVICE = "pass a contiguous array, as numpy.ascontiguousarray makes one"


_UNCHANGING = ("tensorflow", "jax", "jaxlib")  # packages whose tensors never change, which not all of them say
_READ_ONLY = "is read-only, and the result would replace it; pass a copy"
_SCALAR = "is a NumPy scalar, which no result can replace; pass an array, as numpy.array makes one of it"


class ReadOnly(ValueError):
    """The elements may not be changed."""


class Span:
    """`count` elements of number `element` from `address` on, alive as long as this object. `device` is None for memory
    that this process can read and write, else the object of `cuda` that copies it."""

    __slots__ = ("address", "count", "element", "owner", "device")

    def __init__(self, address, count, element, owner, device=None):
        self.address, self.count, self.element, self.owner, self.device = address, count, element, owner, device


def span_of(data, writable=True):
    """The `Span` of an object. Throws `TypeError` or `ValueError` with what is wrong with it, and what to do."""
    if isinstance(data, numpy.ndarray):
        return _of_numpy(data, writable)
    if isinstance(data, numpy.generic):  # its interface describes a copy, which is gone as soon as it is asked for
        if writable:
            raise ReadOnly(_SCALAR)
        return _of_numpy(numpy.asarray(data), writable)
    if writable and type(data).__module__.partition(".")[0] in _UNCHANGING:
        raise ReadOnly(_READ_ONLY)
    interface = getattr(data, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(data, interface, writable, on_device=True)
    interface = getattr(data, "__array_interface__", None)
    if isinstance(interface, dict):
        return _of_interface(data, interface, writable, on_device=False)
    if hasattr(data, "__dlpack__"):
        return _of_dlpack(data, writable)
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"is of type {type(data).__name__}; pass a NumPy array, memory of pyddl.malloc, or an object with "
                        "__array_interface__, __cuda_array_interface__, __dlpack__ or a buffer") from None
    return _of_numpy(_as_array(view), writable)


def _as_array(view):
    try:
        return numpy.asarray(view)
    except (ValueError, TypeError) as why:
        raise ValueError(f"is a buffer of format '{view.format}', which NumPy does not take: {why}") from None


def _of_numpy(data, writable):
    number = elements.of_dtype(data.dtype)
    if number < 0:
        raise ValueError(f"has dtype {data.dtype}{_why_no(data.dtype)}")
    if writable and not data.flags.writeable:
        raise ReadOnly(_READ_ONLY)
    if not _dense(data.shape, data.strides, data.itemsize):
        raise ValueError(f"is strided (shape {data.shape}, strides {data.strides}), so its elements do not lie next to each "
                         f"other; {_ADVICE}")
    return Span(data.ctypes.data, data.size, number, data)


def _why_no(dtype):
    if not dtype.isnative:
        return ", whose bytes are in the other order; pass data.astype(data.dtype.newbyteorder('='))"
    return f"; it takes {', '.join(elements.NAMES)}"


def _dense(shape, strides, itemsize):
    """Whether the elements fill one block of memory, whichever way the axes lie in it."""
    if 0 in shape:
        return True
    expected = itemsize
    for stride, extent in sorted((stride, extent) for stride, extent in zip(strides, shape) if extent != 1):
        if stride != expected:
            return False
        expected *= extent
    return True


def _of_interface(data, interface, writable, on_device):
    try:
        typestr, shape = interface["typestr"], tuple(map(index, interface["shape"]))
        if not isinstance(typestr, str):
            raise TypeError(f"typestr {typestr!r}")
        where, strides = interface.get("data"), interface.get("strides")
        strides = None if strides is None else tuple(map(index, strides))
        if any(extent < 0 for extent in shape) or (strides is not None and len(strides) != len(shape)):
            raise ValueError(f"shape {shape}, strides {strides}")
        of_buffer = not on_device and not isinstance(where, tuple)  # one of its own, or None: the object is a buffer itself
        whole = numpy.asarray(data) if of_buffer else None
        address, read_only = (0, False) if of_buffer else where
        address, count = index(address, 65), index(math.prod(shape))
        if address < 0:
            raise ValueError(f"address {address}")
    except (KeyError, TypeError, ValueError) as why:
        raise ValueError(f"has an array interface that makes no sense: {why!r}; pass a NumPy array") from None
    if of_buffer:
        return _of_numpy(whole, writable)
    try:
        dtype = numpy.dtype(typestr)
    except (TypeError, ValueError, SyntaxError):
        raise ValueError(f"has elements of type '{typestr}', which NumPy does not know") from None
    number = elements.of_dtype(dtype)
    if number < 0:
        raise ValueError(f"has elements of type '{typestr}'{_why_no(dtype)}")
    if writable and read_only:
        raise ReadOnly(_READ_ONLY)
    if strides is not None and not _dense(shape, strides, dtype.itemsize):
        raise ValueError(f"is strided (shape {shape}, strides {strides}), so its elements do not lie next to each "
                         f"other; {_ADVICE}")
    span = Span(address, count, number, (data, interface))
    return _once_produced(span, interface.get("stream")) if on_device else span


def _of_dlpack(data, writable):
    tensor = dlpack.Tensor(data)
    if writable and tensor.read_only:
        raise ReadOnly(_READ_ONLY)
    if tensor.element < 0:
        raise ValueError(f"has elements of DLPack type {tensor.type_name}; it takes {', '.join(elements.NAMES)}")
    size = elements.SIZES[tensor.element]
    if tensor.strides is not None and not _dense(tensor.shape, [stride * size for stride in tensor.strides], size):
        raise ValueError(f"is strided (shape {tensor.shape}, strides {tensor.strides} elements), so its elements do not lie "
                         "next to each other; pass a contiguous tensor")
    span = Span(tensor.address, math.prod(tensor.shape), tensor.element, tensor)
    return _once_produced(span, None) if tensor.on_device else span


def _once_produced(span, stream):
    """The span in the memory of a GPU, behind what that stream does for it."""
    from . import cuda
    span.device = cuda.memory()
    if span.count != 0:
        span.device.await_producer(stream, span.address)
    return span


def host_copy(data):
    """A new NumPy array of the same elements, in the order of C."""
    interface = getattr(data, "__cuda_array_interface__", None)
    if interface is None:
        return numpy.array(data, order="C")
    span = span_of(data, writable=False)
    whole = numpy.empty(span.count, numpy.dtype(interface["typestr"]))
    span.device.to_host(whole.ctypes.data, span.address, whole.nbytes)
    return numpy.asarray(numpy.lib.stride_tricks.as_strided(whole, interface["shape"], interface.get("strides")), order="C")


def listed(tensors):
    """The list of what is meant as several arrays. One with one axis would be taken apart into numbers that nobody looks at later."""
    one = isinstance(tensors, numpy.ndarray) and tensors.ndim < 2 and tensors.dtype != object
    if one or not numpy.iterable(tensors):
        raise TypeError(f"is {'one array' if one else 'of type ' + type(tensors).__name__}; pass a list of arrays")
    return list(tensors)


def duration(value):
    """Seconds as a float."""
    try:
        return ctypes.c_double(value).value
    except TypeError:
        raise TypeError(f"is {value!r}; pass a number") from None
    except OverflowError:
        raise ValueError("is more than a float can be; pass math.inf for no limit") from None


def index(value, bits=64):
    """A number that Python takes as an index, and that a signed one of C of so many bits holds."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):  # the latter of an array of more than one
        raise TypeError(f"is {value!r}; pass an integer") from None
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"is {number}; pass a number of {bits} bits")
    return number
