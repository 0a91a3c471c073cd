# SPDX-License-Identifier: Apache-2.0
"""What `import ddl` changes in TensorFlow, so that scripts for one process train on all ranks."""

import functools
import importlib
import importlib.util
import threading

import tensorflow as tf

from . import launcher, operators

_averaging = threading.local()  # whether this thread is inside an optimizer whose gradients are averages already


def give_gpu_to_sessions():
    """Each session has the GPU of the local rank, and as much of its memory as it needs; it says so in one line."""
    initialise = tf.compat.v1.Session.__init__

    @functools.wraps(initialise)
    def __init__(self, target="", graph=None, config=None):
        own = tf.compat.v1.ConfigProto()
        if config is not None:
            own.CopyFrom(config)
        own.gpu_options.allow_growth = True
        own.gpu_options.visible_device_list = str(launcher.local_rank())
        initialise(self, target, graph, own)
        launcher.say(f"rank {launcher.rank()} of {launcher.size()}, gpuid {launcher.local_rank()}, hosts {launcher.num_hosts()}")

    tf.compat.v1.Session.__init__ = __init__


def give_gpu_to_eager_code():
    """The same for code without a session, if there are GPUs and TensorFlow has not begun to use them."""
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        return
    own = devices[launcher.local_rank() % len(devices)]
    try:
        tf.config.set_visible_devices(own, "GPU")
        tf.config.experimental.set_memory_growth(own, True)
    except RuntimeError as why:  # the script has used one before it imported this
        launcher.say(f"rank {launcher.rank()} keeps its GPUs as they are: {why}; import ddl before anything is computed")


def broadcast_variables():
    """Trainable variables begin with the values of rank 0."""
    with tf.Graph().as_default():
        of_graphs = [type(tf.compat.v1.Variable(0.0, trainable=False, use_resource=resource)) for resource in (True, False)]
    for kind in of_graphs:
        kind.__init__ = _with_value_of_rank_0(kind.__init__)


def _with_value_of_rank_0(initialise):
    @functools.wraps(initialise)
    def __init__(self, initial_value=None, trainable=None, *arguments, **more):
        # what is made from a saved graph, takes its value from a checkpoint, or copies a variable to save it, is the same on all ranks
        is_new = (more.get("variable_def") is None and not hasattr(initial_value, "checkpoint_position")
                  and not isinstance(initial_value, tf.Variable))
        if initial_value is not None and trainable is not False and is_new:
            initial_value = _of_rank_0(initial_value, more.get("dtype"))
        initialise(self, initial_value, trainable, *arguments, **more)

    return __init__


def _of_rank_0(value, dtype):
    if callable(value):
        return functools.wraps(value)(lambda *arguments, **more: _of_rank_0(value(*arguments, **more), dtype))
    if tf.is_tensor(value):
        return _moved(tf.convert_to_tensor(value, dtype=dtype))
    with tf.init_scope():  # where the variable is made
        return _moved(tf.convert_to_tensor(value, dtype=dtype))


def _moved(tensor):
    return operators.bcast(tensor) if operators.is_moved(tensor.dtype) else tensor


def average_gradients():
    """Optimizers of tf.compat.v1 and of Keras apply averages. So do those that look first whether all gradients are finite: each rank by
    itself would find something else."""
    train = tf.compat.v1.train
    kinds = [train.Optimizer, getattr(train.experimental, "MixedPrecisionLossScaleOptimizer", None)]
    for keras in _kerases():
        for place in (keras.optimizers, getattr(keras.optimizers, "legacy", None), getattr(keras, "mixed_precision", None)):
            kinds += [getattr(place, name, None) for name in ("Optimizer", "LossScaleOptimizer")]
            if place is not keras.optimizers and kinds[-1] is not None:
                kinds += kinds[-1].__subclasses__()  # of Keras 2, which has its methods there
    for kind in dict.fromkeys(kinds):
        if hasattr(kind, "apply"):  # of Keras 3, by which apply_gradients goes
            kind.apply = _of_averages(kind.apply, _averages)
        elif hasattr(kind, "apply_gradients"):
            kind.apply_gradients = _of_averages(kind.apply_gradients, operators.grads_reduce)


def leave_xla_out():
    """Models of Keras are not compiled by XLA, which has none of our operators, unless the script says so."""
    for keras in _kerases():
        keras.Model.compile = _without_xla(keras.Model.compile)


def _without_xla(compile_model):
    @functools.wraps(compile_model)
    def compile(self, *arguments, **more):  # pylint: disable=redefined-builtin
        more.setdefault("jit_compile", False)
        return compile_model(self, *arguments, **more)

    return compile


def _kerases():
    """Every Keras that works with TensorFlow here: that of tf.keras, and those beside it."""
    found = [tf.keras] + [importlib.import_module(name) for name in ("keras", "tf_keras") if importlib.util.find_spec(name)]
    by_model = {}
    for each in found:
        backend = getattr(getattr(each, "config", None), "backend", None)  # of Keras 3
        if backend is None or backend() == "tensorflow":
            by_model.setdefault(each.Model, each)
    return list(by_model.values())


def _averages(grads):
    return [grad for grad, _ in operators.grads_reduce((grad, None) for grad in grads)]


def _of_averages(method, averaged):
    """An optimizer's method that is handed averages. Of optimizers that wrap others the outermost takes them."""
    @functools.wraps(method)
    def apply(self, given, *arguments, **more):
        if getattr(_averaging, "here", False):
            return method(self, given, *arguments, **more)
        _averaging.here = True
        try:
            return method(self, averaged(given), *arguments, **more)
        finally:
            _averaging.here = False

    return apply
