# SPDX-License-Identifier: Apache-2.0
"""What `import ddl` changes in TensorFlow, so that scripts for one process train on all ranks."""

import functools
import importlib
import inspect
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
        kind.__init__ = _with_value_of_rank_0(kind.__init__, _of_rank_0)
    of_traces = _kind_of_traces()
    of_traces.__init__ = _with_value_of_rank_0(of_traces.__init__, _of_rank_0_in_a_trace)


def _kind_of_traces():
    """Of the variables that a `tf.function` makes while it is traced."""
    made = []

    @tf.function
    def trace():
        if not made:
            made.append(tf.Variable(0.0, trainable=False))

    with tf.Graph().as_default():
        trace.get_concrete_function()
    return type(made[0])


def _with_value_of_rank_0(initialise, of_rank_0):
    @functools.wraps(initialise)
    def __init__(self, initial_value=None, trainable=None, *arguments, **more):
        # what is made from a saved graph, takes its value from a checkpoint, or copies a variable to save it, is the same on all ranks
        is_new = (more.get("variable_def") is None and not hasattr(initial_value, "checkpoint_position")
                  and not isinstance(initial_value, tf.Variable))
        if initial_value is not None and trainable is not False and is_new:
            initial_value = of_rank_0(initial_value, more.get("dtype"))
        initialise(self, initial_value, trainable, *arguments, **more)

    return __init__


def _of_rank_0(value, dtype):
    if callable(value):
        return functools.wraps(value)(lambda *arguments, **more: _of_rank_0(value(*arguments, **more), dtype))
    if tf.is_tensor(value):
        return _moved(tf.convert_to_tensor(value, dtype=dtype))
    with tf.init_scope():  # where the variable is made
        return _moved(tf.convert_to_tensor(value, dtype=dtype))


def _of_rank_0_in_a_trace(value, dtype):
    """Broadcast at once, in eager code: in the trace it would be one of the operators of a step. Values that are made of tensors of the
    trace are known in no other place, and stay."""
    with tf.init_scope():
        if not tf.executing_eagerly() or tf.is_tensor(value) and not hasattr(value, "numpy"):
            return value
        try:
            tensor = tf.convert_to_tensor(value() if callable(value) else value, dtype=dtype)
        except Exception:  # pylint: disable=broad-except # it needs the trace, or is wrong there too
            return value
        return _moved(tensor)


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
            kind.apply = _of_averages(kind.apply, _averages_of_keras_3)
        elif hasattr(kind, "apply_gradients"):
            kind.apply_gradients = _of_averages(kind.apply_gradients, _averages)


def leave_xla_out():
    """Models of Keras are not compiled by XLA, which has none of our operators, unless the script says so."""
    for keras in _kerases():
        # where the methods are: a model that is read from a file is compiled if its class has this one
        kind = next(each for each in keras.Model.__mro__ if "compile" in vars(each))
        kind.compile = _without_xla(kind.compile)
        if hasattr(kind, "compile_from_config"):
            kind.compile_from_config = _without_xla_in_file(kind.compile_from_config)


def _without_xla(compile_model):
    names = list(inspect.signature(compile_model).parameters)[1:]

    @functools.wraps(compile_model)
    def compile(self, *arguments, **more):  # pylint: disable=redefined-builtin
        if "jit_compile" not in names[:len(arguments)]:
            more.setdefault("jit_compile", False)
        return compile_model(self, *arguments, **more)

    return compile


def _without_xla_in_file(compile_model):
    """A file says what its model was compiled by, and not whether the script had asked for that."""
    @functools.wraps(compile_model)
    def compile_from_config(self, config):
        return compile_model(self, {**config, "jit_compile": False})

    return compile_from_config


def _kerases():
    """Every Keras that works with TensorFlow here: that of tf.keras, and those beside it."""
    by_model = {}
    for find in (lambda: tf.keras, *(functools.partial(importlib.import_module, name) for name in ("keras", "tf_keras"))):
        try:
            each = find()
            model = each.Model  # tf.keras is imported when it is used
        except Exception:  # pylint: disable=broad-except # who wants it hears why
            continue
        backend = getattr(getattr(each, "config", None), "backend", None)  # of Keras 3
        if backend is None or backend() == "tensorflow":
            by_model.setdefault(model, each)
    return list(by_model.values())


def _averages(_optimizer, grads_and_vars, *_arguments, **_more):
    return operators.grads_reduce(grads_and_vars)


def _averages_of_keras_3(optimizer, grads, trainable_variables=None):
    variables = optimizer._trainable_variables if trainable_variables is None else trainable_variables  # pylint: disable=protected-access
    if not hasattr(variables, "__len__") or len(variables) != len(grads):  # an iterator, or what the optimizer will complain of
        variables = [None] * len(grads)
    return [grad for grad, _ in operators.grads_reduce(zip(grads, variables))]


def _of_averages(method, averaged):
    """An optimizer's method that is handed averages. Of optimizers that wrap others the outermost takes them."""
    name = list(inspect.signature(method).parameters)[1]

    @functools.wraps(method)
    def apply(self, *arguments, **more):
        if getattr(_averaging, "here", False) or not (arguments or name in more):
            return method(self, *arguments, **more)
        given, *arguments = arguments or [more.pop(name)]
        _averaging.here = True
        try:
            return method(self, averaged(self, given, *arguments, **more), *arguments, **more)
        finally:
            _averaging.here = False

    return apply
