# SPDX-License-Identifier: Apache-2.0
"""NumPy's own arrays in memory that the other ranks of the host can map."""

import contextlib
import ctypes
import functools
import typing

import numpy

from .dlpack import pointer_of
from .errors import Unsupported
from .library import functions
from .process import world

_SET_HANDLER, _GET_HANDLER = 304, 305  # places of functions in NumPy's C API


@contextlib.contextmanager
def mapped_arrays() -> typing.Iterator[None]:
    """In this block NumPy makes its arrays of 4 KiB and more in memory that peers can map: collectives copy nothing there.

    It is for arrays that live on, such as parameters and gradients: to make one takes longer. They stay what they are behind
    the block, and behind `finalize`. A thread that is started in the block is not in it, unless it inherits the
    context. A process made by fork gets copies of them, which the fork makes; memory of `zeros` it shares with its parent.
    """
    set_handler = handler_setter()
    before = set_handler(_capsule_of(world()._handle))
    try:
        yield
    finally:
        set_handler(before)


def map_arrays_from_here():
    """As in such a block, in this context and without an end."""
    handler_setter()(_capsule_of(world()._handle))


def let_arrays_move_from_here():
    """NumPy's arrays of 64 KiB and more that are made from here on, in this context, move into such memory once collectives keep
    using them, and keep their addresses. Nothing where NumPy cannot be told, or was told by somebody else where to make arrays."""
    try:
        set_handler, get_handler = handler_setter(), _handler_getter()
    except Unsupported:
        return
    movable = functions.numpy_movable_handler(get_handler())
    if movable:
        set_handler(ctypes.cast(movable, ctypes.py_object).value)


def handler_setter():
    """NumPy's PyDataMem_SetHandler."""
    return _numpy_function(_SET_HANDLER, ctypes.py_object)


def _handler_getter():
    """NumPy's PyDataMem_GetHandler."""
    return _numpy_function(_GET_HANDLER)


def _numpy_function(place, *arguments):
    if numpy.lib.NumpyVersion(numpy.__version__) < "1.22.0":
        raise Unsupported(f"mapped_arrays: NumPy {numpy.__version__} cannot be told where to make arrays; use pyddl.zeros")
    core = numpy.core if numpy.__version__.startswith("1.") else numpy._core
    table = ctypes.cast(pointer_of(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)(table[place])


@functools.lru_cache(maxsize=None)
def _capsule_of(handle):
    made = functions.numpy_handler(handle)
    if not made:
        raise MemoryError("mapped_arrays: no memory is left")
    return ctypes.cast(made, ctypes.py_object).value
