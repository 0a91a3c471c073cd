# SPDX-License-Identifier: Apache-2.0
"""The operators of ddl_MDR.so as functions, in eager code, in `tf.function` and in graphs."""

import atexit
import contextlib
import ctypes
import functools
import os
import sys

import tensorflow as tf

from . import launcher
from .library import operator_library

_CHAIN = "ddl_bcast"  # the collection of a graph that names its last broadcast
_FEWEST = 200_000  # elements of a group, whatever DDL_GROUP_SIZE says
_GROUP_SIZE = 10 ** 10
_Session = tf.compat.v1.Session.__init__  # as TensorFlow has it

_MOVED = frozenset("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 "
                   "complex128".split())

started_with = None  # the options of `init`


@functools.lru_cache(maxsize=None)
def loaded():
    """The module that TensorFlow makes of ddl_MDR.so, of the operators that come with it: by a second path it would have none, and the
    script may have loaded it already."""
    for name, module in list(sys.modules.items()):
        if len(name) == 40 and {"init", "bcast", "all_reduce", "all_reduce_n"} <= set(vars(module)):  # the hash of its text
            return module
    return tf.load_op_library(operator_library())


def _answer_for_it():
    """Scripts that load ddl_MDR.so, by any path, get the module that is there."""
    load = tf.load_op_library

    @functools.wraps(load)
    def load_op_library(library_filename):
        if os.path.basename(os.fspath(library_filename)) == os.path.basename(operator_library()):
            return loaded()
        return load(library_filename)

    for place in (tf, tf.compat.v1, tf.compat.v2):
        place.load_op_library = load_op_library


def require_init(call):
    """Throws `RuntimeError` before `init`."""
    if started_with is None:
        raise RuntimeError(f"ddl.{call}, rank {launcher.rank()}: DDL is not started; call ddl.init(options) first")


def init(options):
    """Meets the other ranks, in a session of its own."""
    global started_with
    where = f"ddl.init, rank {launcher.rank()}: "
    if started_with is not None:
        raise RuntimeError(where + f"DDL is started already, with \"{started_with}\"; call it once, and not at all where DDL_OPTIONS "
                           "is set")
    if not isinstance(options, str):
        raise TypeError(where + f"options is {options!r}; pass words such as \"-mode b:4x2\"")
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        rank, size, *_ = _run_in_session(loaded().init(-1, mode=options))
    if (rank, size) != (launcher.rank(), launcher.size()):
        raise RuntimeError(where + f"ddl's ranks are {rank} of {size}, and the launcher says {launcher.rank()} of "
                           f"{launcher.size()}; start all ranks with one launcher")
    started_with = options
    _answer_for_it()
    _watch()


def now(build):
    """What the operator that `build()` makes gives, as an array, in eager code or beside a graph."""
    if tf.executing_eagerly():
        return build().numpy()
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        return _run_in_session(build())


def _run_in_session(fetched):
    class Session(tf.compat.v1.Session):
        """A session that takes no GPU, and of which nothing is printed."""

        __init__ = _Session

    with Session(config=tf.compat.v1.ConfigProto(device_count={"GPU": 0})) as session:
        return session.run(fetched)


def _watch():
    """Ctrl-C ends the wait of an operator, and so does, on the other ranks, an exception that ends this process."""
    from pyddl import interrupt, process
    from pyddl.library import functions
    ranks = ctypes.CDLL(operator_library()).ddl_tensorflow_ranks
    ranks.restype = ctypes.c_void_p
    handle = ranks()
    watch = interrupt.watch(lambda: functions.interrupt(handle), f"ddl.init, rank {launcher.rank()}")

    @atexit.register
    def leave():
        if watch is not None:
            watch.stop()
        why = process.words_of_failure()
        if why is not None:
            functions.abort(handle, why.encode("utf-8", "replace"))


def is_moved(dtype):
    """Whether `bcast` takes tensors of it."""
    return dtype.name in _MOVED


def bcast(tensor):
    tensor = tf.convert_to_tensor(tensor)
    if tf.executing_eagerly():
        return loaded().bcast(tensor)
    graph = tf.compat.v1.get_default_graph()
    last = graph.get_collection_ref(_CHAIN)
    with tf.control_dependencies([each for each in (_operation(graph, name) for name in last) if each is not None]):
        result = loaded().bcast(tensor)
    last[:] = [result.op.name]  # a name, for graphs are saved with their collections
    return result


def _operation(graph, name):
    try:
        return graph.get_operation_by_name(tf.compat.as_str(name))  # bytes, where the graph was read from a file
    except KeyError:  # of the graph that this one is a part of
        return None


def allreduce_n(grads, average=True, device_dense="", device_sparse=""):
    grads = list(grads)
    return _reduced(zip(grads, [None] * len(grads)), average, device_dense, device_sparse)[0]


def _reduced(grads_and_vars, average, device_dense="", device_sparse="", before=None):
    """The reduced tensors, and one that the last of the operators makes; in a graph they run behind `before`."""
    grads = [_dense(*each, device_sparse) for each in grads_and_vars]
    by_type = {}
    for index, each in enumerate(grads):
        if each is not None:
            by_type.setdefault(each.dtype, []).append(index)
    for indices in by_type.values():
        with _device(device_dense), _behind(before):
            results = loaded().all_reduce_n([grads[index] for index in indices], op="avg" if average else "sum")
        for index, each in zip(indices, results):
            grads[index] = each
        before = results[0]
    return grads, before


def grads_reduce(grads_and_vars, average=True):
    pairs = list(grads_and_vars)
    reduced, before = [], None
    for group in _groups(pairs):
        grads, before = _reduced(group, average, before=before)
        reduced += zip(grads, (variable for _, variable in group))
    return reduced


def _dense(grad, variable, device):
    if grad is None:
        return None
    if isinstance(grad, tf.IndexedSlices):
        with _device(device):
            if grad.dense_shape is None and variable is not None:
                grad = tf.IndexedSlices(grad.values, grad.indices, tf.shape(variable))
            return tf.convert_to_tensor(grad)
    return tf.convert_to_tensor(grad)


def _device(name):
    return tf.device(name) if name else contextlib.nullcontext()


def _behind(tensor):
    """In a graph, what is made here runs behind a tensor; eager code runs in its order anyway."""
    if tensor is None or tf.executing_eagerly():
        return contextlib.nullcontext()
    return tf.control_dependencies([tensor])


def _groups(pairs):
    """The pairs in their order, cut so that a group has no more than DDL_GROUP_SIZE elements, unless it would be a small one."""
    words = os.environ.get("DDL_GROUP_SIZE", "")
    if words and not (words.isdigit() and int(words)):
        raise ValueError(f"ddl.grads_reduce, rank {launcher.rank()}: DDL_GROUP_SIZE is \"{words}\"; set a number of elements, 1 or more")
    most = int(words or _GROUP_SIZE)
    group, elements = [], 0
    for pair in pairs:
        count = _elements(*pair)
        if group and elements + count > most and elements >= _FEWEST:
            yield group
            group, elements = [], 0
        group.append(pair)
        elements += count
    if group:
        yield group


def _elements(grad, variable):
    """How many elements a gradient has, as far as a graph knows."""
    for each in (variable, grad):
        count = None if each is None else tf.TensorShape(each.shape).num_elements()
        if count is not None:
            return 0 if grad is None else count
    return 0
