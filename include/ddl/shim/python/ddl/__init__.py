# SPDX-License-Identifier: Apache-2.0
"""IBM DDL for TensorFlow: a script trains on all ranks with one line more.

    import ddl
    dataset = dataset.shard(ddl.size(), ddl.rank())
    optimizer = tf.keras.optimizers.SGD(0.01 * ddl.size())

Start it with `ddlrun --accelerators 4 python train.py`, or with mpirun and DDL_OPTIONS. The import then meets the other ranks, and
from there on trainable variables begin with the values of rank 0, optimizers apply the averages of all ranks' gradients, and each
session has the GPU of its local rank.

Under a launcher without DDL_OPTIONS sessions alone are changed: the script calls `init(options)`, `bcast` and `grads_reduce`.
Without a launcher nothing is changed, and there is one rank.

Functions
    rank() size() local_rank() local_size() num_hosts()
    init(options) bcast(tensor) allreduce_n(grads) grads_reduce(grads_and_vars)
    DDLCallback() DDLGlobalVariablesCallback()       for Keras
    operator_library()                               the path of ddl_MDR.so, for tf.load_op_library

Failures are errors of TensorFlow (`tf.errors`) with ddl's words, which name the call, the rank and the cause, and RuntimeError
where DDL is not started.
"""

import os
import typing

from . import launcher
from .launcher import local_rank, local_size, num_hosts, rank, size
from .library import operator_library

__all__ = ["allreduce_n", "bcast", "grads_reduce", "init", "local_rank", "local_size", "num_hosts", "operator_library", "rank",
           "size"]  # without the callbacks, which need Keras


def init(options: str) -> None:
    """Meets the other ranks, with IBM DDL's options, such as "-mode b:4x2"; to be called once, by all of them.

    DDL_OPTIONS, if it is set, has been taken when this module was imported.
    """
    launcher.require_launcher("init")
    from . import operators
    operators.init(options)


def bcast(tensor: typing.Any) -> typing.Any:
    """The tensor of rank 0. In a graph such calls are carried out in the order in which they were made."""
    return _operators("bcast").bcast(tensor)


def allreduce_n(grads: typing.Sequence[typing.Any], average: bool = True, device_dense: str = "",
                device_sparse: str = "") -> typing.List[typing.Any]:
    """The averages of tensors over all ranks, or their sums, in one exchange for each dtype.

    grads: tensors, the same on every rank but for their values; None stays None, and `tf.IndexedSlices` become dense. device_dense,
    device_sparse: where that is done, and where slices become dense; "" leaves it to TensorFlow.
    """
    return _operators("allreduce_n").allreduce_n(grads, average, device_dense, device_sparse)


def grads_reduce(grads_and_vars: typing.Iterable[typing.Tuple[typing.Any, typing.Any]],
                 average: bool = True) -> typing.List[typing.Tuple[typing.Any, typing.Any]]:
    """Pairs of gradient and variable, with the averages of the gradients over all ranks, or with their sums.

    They go in groups of up to DDL_GROUP_SIZE elements, one after the other; without it in one.
    """
    return _operators("grads_reduce").grads_reduce(grads_and_vars, average)


def __getattr__(name):
    if name in ("DDLCallback", "DDLGlobalVariablesCallback"):
        from . import callbacks  # which loads Keras
        return getattr(callbacks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _operators(call):
    launcher.require_launcher(call)
    from . import operators
    operators.require_init(call)
    return operators


def _begin():
    """What the import does under a launcher."""
    from . import patches
    patches.give_gpu_to_sessions()
    if "DDL_OPTIONS" in os.environ:
        init(os.environ["DDL_OPTIONS"])
        patches.give_gpu_to_eager_code()
        patches.broadcast_variables()
        patches.average_gradients()
        patches.leave_xla_out()
    elif rank() == 0:
        launcher.say("DDL_OPTIONS is not set, so the script is to call ddl.init(options), ddl.bcast and ddl.grads_reduce; with it, "
                     "or under ddlrun, import ddl does all of that")


if launcher.is_rank():
    _begin()
