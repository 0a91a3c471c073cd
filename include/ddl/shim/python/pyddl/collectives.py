# SPDX-License-Identifier: Apache-2.0
"""The collectives of all ranks, as functions: each is the method of `Communicator` of that name."""

import functools
import inspect
import math
import typing

import numpy

from .communicator import Communicator
from .elements import DDL_OP_SUM
from .memory import layout
from .pending import Plan
from .process import here
from .short_way import plain_signature, shorten


def allreduce(x: typing.Any, n: typing.Optional[int] = None, type: typing.Optional[int] = None,
              op: int = DDL_OP_SUM) -> int:
    """Replaces `x` by the combination of all ranks' `x`, on every rank.

    `x`: a NumPy array, memory of `malloc`, or any object that this module takes. `n`: so many of its first elements; without
    it, all. `type`: a DDL_TYPE constant, which must be that of an array, and is float for memory if it is left out. `op`: a
    DDL_OP constant. Returns DDL_SUCCESS; throws `ValueError`, `TypeError` or a `pyddl.Error` if something is wrong.
    """
    return here.ranks.allreduce(x, n, type, op)


if typing.TYPE_CHECKING:  # what else needs Python 3.10
    from typing_extensions import Concatenate, ParamSpec
    _Arguments = ParamSpec("_Arguments")
    _Result = typing.TypeVar("_Result")


def _of_all_ranks(method: "typing.Callable[Concatenate[Communicator, _Arguments], _Result]",
                  ) -> "typing.Callable[_Arguments, _Result]":
    name = method.__name__

    @functools.wraps(method)
    def call(*arguments, **more):
        try:
            return getattr(here.ranks, name)(*arguments, **more)
        except TypeError:
            _refuse_what_is_not_taken(call, arguments, more)
            raise

    call.__qualname__ = name
    call.__module__ = __name__
    call.__annotations__ = typing.get_type_hints(method)  # which need the method's module
    call.__wrapped__ = functools.partial(method, None)  # so that help shows the arguments without `self`
    return call


def _refuse_what_is_not_taken(call, arguments, more):
    """An argument that is missing, or that the call does not have, is refused as any other, for the others wait."""
    try:
        inspect.signature(call).bind(*arguments, **more)
    except TypeError as why:
        why = TypeError(f"do not fit: {why}; pass {plain_signature(call)}")
        raise here.ranks._refused(call.__name__, "the arguments", why) from None


allreduce_n = _of_all_ranks(Communicator.allreduce_n)
broadcast = _of_all_ranks(Communicator.broadcast)
reduce = _of_all_ranks(Communicator.reduce)
reduce_scatter = _of_all_ranks(Communicator.reduce_scatter)
all_gather = _of_all_ranks(Communicator.all_gather)
gather = _of_all_ranks(Communicator.gather)
scatter = _of_all_ranks(Communicator.scatter)
all_to_all = _of_all_ranks(Communicator.all_to_all)
barrier = _of_all_ranks(Communicator.barrier)
block = _of_all_ranks(Communicator.block)
allreduce_async = _of_all_ranks(Communicator.allreduce_async)
allreduce_n_async = _of_all_ranks(Communicator.allreduce_n_async)
broadcast_async = _of_all_ranks(Communicator.broadcast_async)
barrier_async = _of_all_ranks(Communicator.barrier_async)
plan_allreduce = _of_all_ranks(Communicator.plan_allreduce)
split = _of_all_ranks(Communicator.split)
set_timeout = _of_all_ranks(Communicator.set_timeout)
set_schedule = _of_all_ranks(Communicator.set_schedule)


def zeros(shape: typing.Any, dtype: typing.Any = numpy.float32) -> numpy.ndarray:
    """A NumPy array of zeros in memory that the other ranks of the host can map: collectives on it copy nothing."""
    extents, dtype = layout("zeros", shape, dtype)
    return here.ranks.malloc(math.prod(extents) * dtype.itemsize).array(extents, dtype)


empty = zeros  # such memory is zero anyway

# Behind all that looks at what this replaces.
shorten(Communicator, "allreduce", "broadcast", "reduce", "barrier")
shorten(Plan, "__call__")
