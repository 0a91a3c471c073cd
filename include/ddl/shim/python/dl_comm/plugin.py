# SPDX-License-Identifier: Apache-2.0
"""libdl_comm.so, the Cray interface in C, called with lists of arrays: one tower, several tensors."""

import contextlib
import ctypes
from ctypes import POINTER, c_char_p, c_int, c_void_p

import numpy

from pyddl import arrays, elements
from pyddl.errors import Error
from pyddl.library import load

_library = load("libdl_comm.so")
_TENSORS = [POINTER(POINTER(c_void_p)), POINTER(POINTER(c_int)), POINTER(POINTER(c_int)), POINTER(c_int), c_int, c_int]
for _name, _arguments in (("init_mpi", []), ("init", []), ("finalize", []), ("create_team", [c_int] * 3),
                          ("gradients", _TENSORS), ("broadcast", _TENSORS), ("get_rank", []), ("localrank", []),
                          ("get_nranks", []), ("last_error", []), ("refuse_gradients", [c_int]), ("refuse_broadcast", [])):
    getattr(_library, "dl_comm_" + _name).argtypes = _arguments
_library.dl_comm_last_error.restype = c_char_p

# By name of NumPy: the number of dlDataType_t.
TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 3, "int32": 4, "int64": 5}
MOST = (1 << 31) - 1


class State:
    """Where this process stands between the start and the end."""

    met = False  # ranks are known
    started = False
    ended = False


def call(name, *arguments, caller=None):
    """Calls the library; a failure, of which it has written a line to stderr, becomes an exception of `caller`, or of that name."""
    result = getattr(_library, "dl_comm_" + name)(*arguments)
    if result < 0:
        raise Error(f"{caller or name}: {_library.dl_comm_last_error().decode('utf-8', 'replace')}")
    return result


@contextlib.contextmanager
def told(name, *team):
    """What this rank's arguments throw in the block is told to the others, who wait in `gradients` of that team (-1: of none),
    or in `broadcast`."""
    try:
        yield
    except Exception:
        getattr(_library, "dl_comm_refuse_" + name)(*team)
        raise


def require(name, met_is_enough=False):
    if State.ended:
        raise Error(f"{name}: dl_comm was finalised; call finalize() last")
    if not (State.started or (met_is_enough and State.met)):
        raise Error(f"{name}: dl_comm is not started; call init() first")


def _where(name):
    return f"{name}, rank {call('get_rank')}" if State.met else name


def number(name, argument, value, least, most):
    """An integer from `least` to `most`."""
    try:
        result = arrays.index(value)
    except (TypeError, ValueError) as why:
        raise type(why)(f"{_where(name)}: {argument} {why}") from None
    if not least <= result <= most:
        raise ValueError(f"{_where(name)}: {argument} is {result}; pass {least} to {most}")
    return result


def exchange(name, tensors, *team, root=0, caller=None):
    """`gradients` by a team, or `broadcast`, of all tensors in one exchange, in place, for `caller` if that is another. Returns the
    list of them, with a new array for each that a framework does not let us change. Elements go in the order of C where an array's
    axes lie in another."""
    caller = caller or name
    with told(name, *team):
        tensors = listed(caller, tensors)
        spans = [_span(caller, place, tensors) for place in range(len(tensors))]
    count = len(spans)
    room = max(count, 1)
    pointers = (c_void_p * room)(*[span.address for span in spans])
    lengths = (c_int * room)(*[span.count for span in spans])
    types = (c_int * room)(*[TYPES[elements.NAMES[span.element]] for span in spans])
    call(name, (POINTER(c_void_p) * 1)(ctypes.cast(pointers, POINTER(c_void_p))),
         (POINTER(c_int) * 1)(ctypes.cast(lengths, POINTER(c_int))), (POINTER(c_int) * 1)(ctypes.cast(types, POINTER(c_int))),
         (c_int * 1)(count), 1, *(team or [root]), caller=caller)
    for tensor, span in zip(tensors, spans):
        if isinstance(tensor, numpy.ndarray) and span.owner is not tensor:
            numpy.asarray(tensor)[...] = span.owner
    return tensors


def listed(name, tensors):
    try:
        return arrays.listed(tensors)
    except TypeError as why:
        raise TypeError(f"{name}, rank {call('get_rank')}: tensors {why}") from why


def _span(name, place, tensors):
    try:
        try:
            span = arrays.span_of(tensors[place])
        except (TypeError, arrays.ReadOnly):
            if isinstance(tensors[place], (numpy.ndarray, numpy.generic)) or not hasattr(tensors[place], "__array__"):
                raise
            tensors[place] = numpy.array(tensors[place], order="C")
            span = arrays.span_of(tensors[place])
        if isinstance(tensors[place], numpy.ndarray) and not tensors[place].flags.c_contiguous:
            span = arrays.span_of(numpy.array(tensors[place], order="C"))
        if elements.NAMES[span.element] not in TYPES:
            raise ValueError(f"has elements of type {elements.NAMES[span.element]}; it takes {', '.join(TYPES)}")
        if span.count > MOST:
            raise ValueError(f"holds {span.count} elements; pass at most {MOST}")
    except (TypeError, ValueError) as why:
        raise type(why)(f"{name}, rank {call('get_rank')}: tensor {place} {why}") from None
    return span
